"""Modules that the zygote may import: each lot is imported by a child first, which may do what a run may do.

Everything is tried at once, and where that does not pass, each package by itself.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable

from . import compat, isolation, limits, preload, scratch

_LIMITS = {"cpu_seconds": 60, "memory_bytes": 8 << 30}


class Trials:
    """``detach``: what a child of the zygote does first."""

    def __init__(self, detach: Callable[[int], None]) -> None:
        self._detach = detach
        self._waiting: list[list[str]] = []
        self._names: list[str] = []
        self._folder = ""
        self.pid = 0
        """The child that tries, or 0."""

    @property
    def due(self) -> bool:
        return bool(self._waiting) and not self.pid

    def add(self, names: list[str]) -> None:
        new = [name for name in names if name not in preload.settled]
        preload.settled.update(new)
        if new:
            self._waiting.append(new)

    def start(self) -> None:
        self._names = self._waiting.pop(0)
        self._folder = tempfile.mkdtemp(prefix=scratch.PREFIX)
        parent = os.getpid()
        self.pid = forked()
        if self.pid == 0:
            try:
                self._detach(parent)
                scratch.enter(self._folder)
                limits.apply(_LIMITS)
                os._exit(0 if _passes(self._names) else 1)
            finally:
                os._exit(1)

    def finish(self) -> None:
        """The child has ended."""
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        packages = dict.fromkeys(map(preload.package, self._names))
        if status == 0:
            with isolation.another_home(self._folder):
                preload.load(self._names)
            preload.loaded.update(packages)
            keep()
        elif len(packages) > 1:
            self._waiting += [[name for name in self._names if preload.package(name) == each] for each in packages]
        shutil.rmtree(self._folder, ignore_errors=True)


def forked() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax warns of any fork; here it has started no thread
        return os.fork()


def keep() -> None:
    """What was imported stays for good: the collector need not touch, and so copy, its pages in every child."""
    gc.collect()
    gc.freeze()


def _passes(names: list[str]) -> bool:
    """Whether modules are imported without network, programs and threads, and bring nothing of jax."""
    refused, threads, jax = isolation.enter({}), _threads(), preload.modules_of_jax()
    preload.load(names)
    return not (refused or compat.backends_initialized() or _threads() > threads or preload.modules_of_jax() > jax)


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1
