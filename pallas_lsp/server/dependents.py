"""Which open documents import a file, through files of the workspace that need not be open.

Imports are read from the text by a pattern, not a parser: this runs while typing, on texts that may not parse, and one
import too many only costs a check.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pallas_lsp.server.documents import Documents, OpenDocument, lines_on_disk
from pallas_lsp.source.workspace import imported_modules

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^#\n;]*)"
    r"|import[ \t]+(?P<modules>[^#\n;]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"[\w.]+")
_MOST_FILES = 400


class Dependents:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._imports: dict[str, tuple[object, tuple[str, ...]]] = {}

    def naming(self, paths: Iterable[str], files: set[str]) -> set[str]:
        """Those of ``paths`` that import a module, themselves or through others, of the name of a file that came or
        went: what they import may be another file now, or none."""
        stems = {Path(file).parent.name if Path(file).stem == "__init__" else Path(file).stem for file in files}
        return {path for path in paths if any(stems & self._names(each) for each in (path, *self.closure(path)))}

    def _names(self, path: str) -> set[str]:
        lines = self._documents.lines(path)
        return {part for name in imported_modules(lines.text if lines else "") for part in name.split(".")}

    def importers(self, path: str) -> list[str]:
        """The other open documents that import a file."""
        others = [document for document in self._documents.all() if document.path != path and document.is_python]
        return [document.path for document in others if path in self.closure(document.path)]

    def imported(self, path: str) -> list[str]:
        """The other open documents that a file imports."""
        closure = self.closure(path)
        return [document.path for document in self._documents.all() if document.path in closure]

    def closure(self, path: str) -> set[str]:
        """The workspace's files that a file imports, directly or not; without the file itself."""
        found: set[str] = set()
        todo = [path]
        while todo and len(found) < _MOST_FILES:
            for each in self._imported_by(todo.pop()):
                if each != path and each not in found:
                    found.add(each)
                    todo.append(each)
        return found

    def clear(self) -> None:
        """Files have come or gone: what an import leads to may be another one."""
        self._imports.clear()

    def _imported_by(self, path: str) -> tuple[str, ...]:
        document = self._documents.at(path)
        stamp: object
        if document is not None:
            stamp = document
        else:
            try:
                stamp = Path(path).stat().st_mtime_ns
            except OSError:
                return ()
        # A file that is opened may be new, and imported all along.
        stamp = (stamp, self._documents.roots, frozenset(each.path for each in self._documents.all()))
        known = self._imports.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, tuple(dict.fromkeys(self._read(path, document))))
            self._imports[path] = known
        return known[1]

    def _read(self, path: str, document: OpenDocument | None) -> Iterator[str]:
        if document is not None:
            text = document.text
        else:
            lines = lines_on_disk(path)
            text = lines.text if lines is not None else ""
        folder = os.path.dirname(path)  # noqa: PTH120
        for match in _IMPORT.finditer(text):
            if match["modules"] is not None:
                for module in match["modules"].split(","):
                    name = _NAME.match(module.strip())
                    if name is not None:
                        yield from self._files(folder, name.group(), ())
            else:
                names = _NAME.findall(re.sub(r"\bas\s+\w+|#[^\n]*", "", match["names"]))
                yield from self._files(folder, match["base"], tuple(names))

    def _files(self, folder: str, module: str, names: tuple[str, ...]) -> Iterator[str]:
        relative = module.lstrip(".")
        dots = len(module) - len(relative)
        parts = [part for part in relative.split(".") if part]
        if dots:
            base = Path(folder)
            for _ in range(dots - 1):
                base = base.parent
            bases = [base]
        else:
            bases = [Path(folder), *(Path(root) for root in self._documents.roots)]
            bases += [Path(root, "src") for root in self._documents.roots]
        for base in bases:
            target = base.joinpath(*parts)
            found = [*self._module(target)] if parts else [*self._exists(target / "__init__.py")]
            for name in names:
                found += self._module(target / name)
            # The packages on the way are imported too.
            for depth in range(1, len(parts)):
                found += self._exists(base.joinpath(*parts[:depth], "__init__.py"))
            if found:
                yield from found
                return

    def _module(self, target: Path) -> list[str]:
        return self._exists(target.with_name(target.name + ".py")) or self._exists(target / "__init__.py")

    def _exists(self, file: Path) -> list[str]:
        path = str(file)
        return [path] if self._documents.at(path) is not None or file.is_file() else []
