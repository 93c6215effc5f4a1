"""When the results of a file that is not open end: when it, or a file that it imports, changes on disk.

An editor's file watcher reports a change when it gets to it, which may be after the changed file has been checked.
What counts is therefore whether a file differs from what was checked, not that there was an event.
"""

from __future__ import annotations

from pathlib import Path

from pallas_lsp.server.dependents import Dependents

Stamp = tuple[int, int] | None
"""Modification time in nanoseconds and size in bytes; None for a file that is not there."""


class ClosedFiles:
    def __init__(self, dependents: Dependents) -> None:
        self._dependents = dependents
        self._checked: dict[str, dict[str, Stamp]] = {}

    def stamps(self, path: str) -> dict[str, Stamp]:
        """How a file and those that it imports are on disk now; to be taken before a check reads them."""
        return {each: _stamp(each) for each in (path, *self._dependents.closure(path))}

    def checked(self, path: str, stamps: dict[str, Stamp]) -> bool:
        """Keep what a check read.  False where that has changed meanwhile, so that its results hold no more."""
        if any(_stamp(each) != stamp for each, stamp in stamps.items()):
            return False
        self._checked[path] = stamps
        return True

    def outdated(self, reported: set[str]) -> set[str]:
        """The checked files whose results an event for ``reported`` ends; they are forgotten here."""
        ended = {
            owner
            for owner, stamps in self._checked.items()
            if any(path in stamps and _stamp(path) != stamps[path] for path in reported)
        }
        for owner in ended:
            del self._checked[owner]
        return ended


def _stamp(path: str) -> Stamp:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
