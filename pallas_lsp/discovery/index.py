"""The workspace index: each Python file's imports and kind, kept on disk and brought up to date incrementally."""

# Paths are joined as text here: this runs for each import of each file, and pathlib costs several times as much.
# ruff: noqa: PTH110, PTH118, PTH120, PTH206

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import platformdirs

from pallas_lsp.model import Snapshot
from pallas_lsp.source.workspace import imported_modules, read_text

VERSION = 1
MOST_FILES = 30_000
_PRUNED = frozenset(
    (".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages", "build", "dist", ".tox", ".nox", ".eggs")
)
_TEST_FILE = re.compile(r"(^|[/\\])(test_[^/\\]*|[^/\\]*_test|tests?)\.py$")
_TEST_DEFINED = re.compile(r"^\s*(?:async\s+)?def\s+test|^class\s+\w*Test", re.MULTILINE)
_MAIN_BLOCK = re.compile(r"""^if\s+(__name__\s*==\s*['"]__main__['"]|['"]__main__['"]\s*==\s*__name__)""", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """What is known of one file.  ``changed``: its modification time in nanoseconds; 0 for an open document."""

    changed: int
    size: int
    imports: tuple[str, ...]
    test: bool
    script: bool


class Index:
    """The Python files below one workspace folder.  ``refresh`` may be called from any thread."""

    def __init__(self, root: str, folder: Path | None = None, *, deep: bool = True) -> None:
        """``folder``: where the index is kept; ``deep`` False leaves out folders below ``root``."""
        self.root = os.path.realpath(root)
        self._deep = deep
        base = folder or Path(platformdirs.user_cache_dir("pallas-lsp"))
        self._store = base / "index" / f"{sha256(self.root.encode()).hexdigest()[:24]}.json"
        self._lock = threading.Lock()
        self._refreshed = 0.0
        self._reverse: dict[str, set[str]] | None = None
        self.entries: dict[str, Entry] = self._load()

    # -- keeping it up to date -----------------------------------------------------------------------------------------

    def refresh(self, snapshot: Snapshot, max_age: float = 5.0) -> None:
        """Read what changed since the last time, unless that is less than ``max_age`` seconds ago."""
        with self._lock:
            if time.monotonic() - self._refreshed < max_age and self._refreshed:
                return
            seen: dict[str, Entry] = {}
            changed = False
            for path, status in self._walk():
                known = self.entries.get(path)
                document = snapshot.documents.get(path)
                if document is not None:
                    entry = _entry(document.text, path, 0, len(document.text))
                elif known is not None and (known.changed, known.size) == (status.st_mtime_ns, status.st_size):
                    entry = known
                else:
                    try:
                        entry = _entry(read_text(snapshot, path), path, status.st_mtime_ns, status.st_size)
                    except (OSError, ValueError, SyntaxError, LookupError):
                        continue
                changed = changed or entry != known
                seen[path] = entry
            changed = changed or len(seen) != len(self.entries)
            self.entries = seen
            self._refreshed = time.monotonic()
            if changed:
                self._reverse = None
                self._save()

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        count = 0
        pending = [self.root]
        while pending and count < MOST_FILES:
            try:
                entries = list(os.scandir(pending.pop()))
            except OSError:
                continue
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if not self._deep:
                            continue
                        hidden = entry.name.startswith(".") or entry.name in _PRUNED
                        if not hidden and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                            pending.append(entry.path)
                    elif entry.name.endswith(".py"):
                        count += 1
                        yield entry.path, entry.stat()
                except OSError:
                    continue

    def _load(self) -> dict[str, Entry]:
        try:
            stored = json.loads(self._store.read_text(encoding="utf-8"))
            if stored.get("version") != VERSION:
                return {}
            return {p: Entry(**{**e, "imports": tuple(e["imports"])}) for p, e in stored["files"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def _save(self) -> None:
        stored = {"version": VERSION, "files": {path: asdict(entry) for path, entry in self.entries.items()}}
        write_atomically(self._store, json.dumps(stored))

    def state(self, path: str) -> str:
        """Changes when a file that imports ``path`` changes, appears or goes."""
        digest = sha256()
        for importer, _ in self.importers(path):
            entry = self.entries[importer]
            digest.update(repr((importer, entry.changed, entry.size, entry.imports)).encode())
        return digest.hexdigest()

    # -- questions -----------------------------------------------------------------------------------------------------

    def importers(self, path: str) -> Iterator[tuple[str, int]]:
        """The files that import a file, directly or through others, nearest first, with the length of the chain."""
        reverse = self._reverse_edges()
        start = os.path.realpath(path)
        distances = {start: 0}
        pending = deque([start])
        while pending:
            current = pending.popleft()
            for importer in sorted(reverse.get(current, ())):
                if importer not in distances:
                    distances[importer] = distances[current] + 1
                    pending.append(importer)
                    yield importer, distances[importer]

    def _reverse_edges(self) -> dict[str, set[str]]:
        reverse = self._reverse
        if reverse is None:
            reverse = {}
            by_name = self._by_name()
            for importer, entry in self.entries.items():
                for imported in entry.imports:
                    for target in self._targets(importer, imported, by_name):
                        if target != importer:
                            reverse.setdefault(target, set()).add(importer)
            self._reverse = reverse
        return reverse

    def _by_name(self) -> dict[str, list[str]]:
        """Files by every dotted name under which they may be imported: each suffix of their path below the root."""
        found: dict[str, list[str]] = {}
        for path in self.entries:
            parts = os.path.relpath(path, self.root)[:-3].split(os.sep)
            if parts[-1] == "__init__":
                parts.pop()
            for start in range(len(parts)):
                found.setdefault(".".join(parts[start:]), []).append(path)
        return found

    def _targets(self, importer: str, imported: str, by_name: dict[str, list[str]]) -> list[str]:
        level = len(imported) - len(imported.lstrip("."))
        if not level:
            return by_name.get(imported, [])
        base = os.path.dirname(importer)
        for _ in range(level - 1):
            base = os.path.dirname(base)
        stem = os.path.join(base, *imported[level:].split(".")) if imported[level:] else base
        candidates = (f"{stem}.py", os.path.join(stem, "__init__.py"))
        return [path for path in candidates if path in self.entries]


def _entry(text: str, path: str, changed: int, size: int) -> Entry:
    test = bool(_TEST_FILE.search(path)) or ("test" in path.lower() and bool(_TEST_DEFINED.search(text)))
    return Entry(changed, size, imported_modules(text), test, bool(_MAIN_BLOCK.search(text)))


def write_atomically(path: Path, text: str, mode: int = 0o777) -> None:
    """Write a file of the cache; one that cannot be written is left out.  ``mode``: of a new folder."""
    try:
        path.parent.mkdir(mode=mode, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).replace(path)
    except OSError:
        return
