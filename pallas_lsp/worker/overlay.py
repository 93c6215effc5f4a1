"""Open documents over the files on disk: imports and ``linecache`` see the text on the screen."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
import types
from collections.abc import Mapping, Sequence


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from an open document; never reads or writes bytecode."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_data(self, path: str) -> bytes:  # noqa: ARG002 - the import system's signature
        return self._text.encode()

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return self._text

    def get_code(self, fullname: str) -> types.CodeType:  # noqa: ARG002
        return compile(self._text, self.path, "exec", dont_inherit=True)


class Overlay(importlib.abc.MetaPathFinder):
    """Serves the open documents to the import system, also those not saved yet."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._documents = {os.path.realpath(path): (path, text) for path, text in documents.items()}

    def install(self) -> None:
        sys.meta_path.insert(0, self)
        for path, text in self._documents.values():
            remember(path, text)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        tail = fullname.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            base = os.path.join(os.path.realpath(folder or os.getcwd()), tail)
            for candidate, package in ((os.path.join(base, "__init__.py"), True), (f"{base}.py", False)):
                if candidate in self._documents:
                    shown, text = self._documents[candidate]
                    return importlib.util.spec_from_file_location(
                        fullname,
                        shown,
                        loader=_Loader(fullname, shown, text),
                        submodule_search_locations=[os.path.dirname(shown)] if package else None,
                    )
                if os.path.exists(candidate):
                    return None  # the same module from disk comes first on the path
        return None


def remember(path: str, text: str) -> None:
    """Let tracebacks and ``inspect.getsource`` show the text on the screen."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
