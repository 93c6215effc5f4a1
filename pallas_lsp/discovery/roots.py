"""The workspace folder of a file."""

from __future__ import annotations

from pathlib import Path

from pallas_lsp.model import Snapshot

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", ".git", ".hg")


def workspace_of(snapshot: Snapshot, path: str) -> tuple[str, bool]:
    """The folder to search for drivers, and whether folders below it belong to it.

    The editor's workspace folder if the file lies in one, else the nearest folder with a project's file.  A file in
    neither has its own folder alone: what lies below a home folder is not searched.
    """
    around = [root for root in snapshot.roots if Path(path).is_relative_to(root)]
    if around:
        return max(around, key=len), True
    for folder in Path(path).parents:
        if any((folder / mark).exists() for mark in _MARKS):
            return str(folder), True
    return str(Path(path).parent), False
