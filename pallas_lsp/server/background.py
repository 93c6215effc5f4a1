"""Work for when nobody waits for anything: one piece at a time, after all checks.

A keystroke stops the piece that runs; it begins again in the next lull, unless a newer check has put another in its
place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]

LULL = 0.3
"""Seconds after a keystroke in which nothing begins: the next one would only end it."""
_LOOK = 0.05
"""Seconds after which is asked again whether a check still runs."""


class Background:
    """``busy()``: whether something more urgent is to be done."""

    def __init__(self, busy: Callable[[], bool]) -> None:
        self._busy = busy
        self._waiting: dict[str, Work] = {}
        self._task: asyncio.Task[None] | None = None
        self._piece: tuple[str, asyncio.Task[None]] | None = None
        self._not_before = 0.0

    def put(self, key: str, work: Work) -> None:
        """Plan work in place of what was planned under this key."""
        self.drop(key)
        self._waiting[key] = work
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    def drop(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._stop(key)

    def give_way(self) -> None:
        """Somebody types."""
        self._not_before = asyncio.get_running_loop().time() + LULL
        self._stop()

    def close(self) -> None:
        self._waiting.clear()
        self._stop()
        if self._task is not None:
            self._task.cancel()

    def _stop(self, key: str | None = None) -> None:
        if self._piece is not None and key in (None, self._piece[0]):
            self._piece[1].cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            lull = self._not_before - loop.time()
            if lull > 0 or self._busy():
                await asyncio.sleep(max(lull, _LOOK))
                continue
            key, work = next(iter(self._waiting.items()))
            piece = asyncio.ensure_future(work())
            self._piece = key, piece
            try:
                await asyncio.wait([piece])
            finally:
                piece.cancel()
                self._piece = None
            if piece.cancelled():
                continue  # it is still planned, or its place is another's
            if (error := piece.exception()) is not None:
                logger.error("Work in the background failed. Please report this.", exc_info=error)
            if self._waiting.get(key) is work:
                del self._waiting[key]
