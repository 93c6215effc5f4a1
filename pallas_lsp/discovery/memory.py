"""What discovery found, kept on disk: which drivers elsewhere reached which launches of a file.

An edit of a kernel runs those drivers again and nothing else; discovery runs again when the file of a driver changed,
or when a launch appears that none of them reaches.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import platformdirs

from pallas_lsp.discovery.index import write_atomically
from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.workspace import read_text

VERSION = 2


class Memory:
    def __init__(self, folder: Path | None = None) -> None:
        base = folder or Path(platformdirs.user_cache_dir("pallas-lsp"))
        self._folder = base / "drivers"
        self._loaded: dict[str, dict[str, object]] = {}

    def drivers(self, snapshot: Snapshot, path: str) -> tuple[Driver, ...] | None:
        """The drivers that reached launches of a file; None where nothing is known or a driver's file changed."""
        known = self._read(path)
        if known is None:
            return None
        try:
            if any(_digest(read_text(snapshot, file)) != digest for file, digest in known["files"].items()):  # type: ignore[attr-defined]
                return None
            return tuple(Driver(**{**each, "lines": ()}) for each in known["drivers"])  # type: ignore[attr-defined]
        except (OSError, ValueError, SyntaxError, TypeError, KeyError):
            return None

    def remember(self, snapshot: Snapshot, path: str, drivers: tuple[Driver, ...]) -> None:
        """Keep what reached launches of ``path``; an empty tuple is kept too: nothing does."""
        files = {}
        for driver in drivers:
            try:
                files[driver.path] = _digest(read_text(snapshot, driver.path))
            except (OSError, ValueError, SyntaxError):
                return
        stored = {"version": VERSION, "path": path, "files": files, "drivers": [asdict(driver) for driver in drivers]}
        if stored != self._loaded.get(path):
            self._loaded[path] = stored
            write_atomically(self._file(path), json.dumps(stored))

    def forget(self, path: str) -> None:
        self._loaded.pop(path, None)
        self._file(path).unlink(missing_ok=True)

    def _read(self, path: str) -> dict[str, object] | None:
        if path not in self._loaded:
            try:
                stored = json.loads(self._file(path).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return None
            if not isinstance(stored, dict) or stored.get("version") != VERSION:
                return None
            self._loaded[path] = stored
        return self._loaded[path]

    def _file(self, path: str) -> Path:
        return self._folder / f"{sha256(path.encode()).hexdigest()[:24]}.json"


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
