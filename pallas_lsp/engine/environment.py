"""Whether the Python environments of checked files changed: packages came or went, an interpreter was mended.

Nobody tells us of that, so a few files are looked at, a few times a second.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.pool import Pool

_SECONDS = 0.2
_MOST = 16
"""Folders whose interpreter is looked for; those that were checked last."""

Place = tuple[str, tuple[str, ...]]
"""A file, and the workspace's folders."""
State = dict[str, object]


class EnvironmentWatch:
    """``find(path, roots)`` is the interpreter for a file; ``changed`` is called once a change has come to rest: an
    installation goes on for a while."""

    def __init__(self, find: Callable[[str, tuple[str, ...]], str], pool: Pool, changed: Callable[[], None]) -> None:
        self._find = find
        self._pool = pool
        self._changed = changed
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._states: dict[str, State] = {}
        self._task: asyncio.Task[None] | None = None

    def checked(self, folder: str, path: str, roots: tuple[str, ...]) -> None:
        """A file of a folder is about to be checked: what changes from now on, its check may not have seen."""
        self._places[folder] = (path, roots)
        self._places.move_to_end(folder)
        if folder not in self._states:  # a later check, of a fix perhaps, must not hide a change from those before
            self._states[folder] = self._state(path, roots)
        while len(self._places) > _MOST:
            gone, _ = self._places.popitem(last=False)
            self._states.pop(gone, None)
        if self._task is None:
            self._task = asyncio.ensure_future(self._look())

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _look(self) -> None:
        restless = False
        while True:
            await asyncio.sleep(_SECONDS)
            moved = False
            for folder, place in self._places.items():
                now, before = self._state(*place), self._states.get(folder, {})
                self._states[folder] = {**before, **now}  # while a worker starts, less is known
                # What is looked at for the first time counts as the worker found it, which may have failed by then.
                before = {**self._pool.watched(str(now[""])), **before}
                moved = moved or any(name in before and before[name] != value for name, value in now.items())
            if restless and not moved:
                self._changed()
            restless = moved

    def _state(self, path: str, roots: tuple[str, ...]) -> State:
        try:
            python = self._find(path, roots)
        except WorkerUnavailable as error:
            return {"": error.message}
        return {"": python, **self._pool.stamps(python)}
