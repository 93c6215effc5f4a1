"""Which files of the user's a run read: its results hold as long as these stay as they are."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Collection
from typing import Any

from . import frames

_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/")


class Reads:
    """Notes from now on which files are opened, but for ``known`` ones and those of installed packages."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = {os.path.realpath(path) for path in known}
        self._scratch = os.path.realpath(os.getcwd()) + os.sep
        self._found: set[str] = set()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and arguments and isinstance(arguments[0], (str, bytes)):
            with contextlib.suppress(Exception):  # an exception here would be raised in the user's code
                self._found.add(os.path.abspath(os.fsdecode(arguments[0])))

    def paths(self) -> list[str]:
        found = set()
        for path in self._found:
            real = os.path.realpath(path)
            if real.endswith(".pyc"):
                with contextlib.suppress(ValueError, NotImplementedError):
                    real = importlib.util.source_from_cache(real)
            if real in self._known or real.startswith((self._scratch, *_SYSTEM)) or frames.is_installed(real):
                continue
            found.add(real)
        return sorted(found)
