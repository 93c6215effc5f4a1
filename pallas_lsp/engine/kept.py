"""Results by content: in memory, and on the disk between sessions."""

from __future__ import annotations

import contextlib
import json
import time
from collections import OrderedDict
from concurrent.futures import Executor
from pathlib import Path

from pallas_lsp.discovery.index import write_atomically
from pallas_lsp.engine.parts import Part

MOST_IN_MEMORY = 512
MOST_ON_DISK = 2000
_UNUSED = 30 * 24 * 3600.0
"""Seconds after which what nobody asked for is removed from the disk."""


class Kept:
    """``folder``: where results are kept between sessions, None for not at all.  ``threads`` write."""

    def __init__(self, folder: Path | None, threads: Executor) -> None:
        self._folder = folder
        self._threads = threads
        self._parts: OrderedDict[str, Part] = OrderedDict()
        self._tidied = False

    def get(self, key: str) -> Part | None:
        part = self._parts.get(key)
        if part is None and self._folder is not None:
            part = self._read(self._folder / f"{key}.json")
            if part is not None:
                self._put(key, part)
        if part is not None:
            self._parts.move_to_end(key)
        return part

    def put(self, key: str, part: Part) -> None:
        if self._parts.get(key) == part:
            return
        self._put(key, part)
        if self._folder is not None:
            with contextlib.suppress(RuntimeError):  # the threads have ended: so has the session
                self._threads.submit(self._write, self._folder, key, json.dumps(part, separators=(",", ":")))

    def _put(self, key: str, part: Part) -> None:
        self._parts[key] = part
        while len(self._parts) > MOST_IN_MEMORY:
            self._parts.popitem(last=False)

    @staticmethod
    def _read(path: Path) -> Part | None:
        try:
            part = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        with contextlib.suppress(OSError):
            path.touch()
        return part if isinstance(part, dict) else None

    def _write(self, folder: Path, key: str, text: str) -> None:
        write_atomically(folder / f"{key}.json", text, mode=0o700)
        if not self._tidied:
            self._tidied = True
            _tidy(folder)


def _tidy(folder: Path) -> None:
    """Remove what was not asked for in a long time, and the oldest of too many."""
    ages = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                ages.append((path.stat().st_mtime, path))
    ages.sort(key=lambda each: each[0])
    oldest = time.time() - _UNUSED
    for number, (used, path) in enumerate(ages):
        if used < oldest or number < len(ages) - MOST_ON_DISK:
            with contextlib.suppress(OSError):
                path.unlink()
