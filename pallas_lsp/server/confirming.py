"""GPU verdicts in the background: after a final report, behind every check, given up as soon as the text changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pallas_lsp.model import Report, Snapshot
from pallas_lsp.server.engines import EngineLike

if TYPE_CHECKING:
    from pallas_lsp.confirm.confirmation import Confirmation

logger = logging.getLogger(__name__)

_PAUSE = 0.5
"""Seconds without a new check after which a confirmation begins."""

Take = Callable[[str, Report, Snapshot], bool]


class Confirming:
    """``take(path, report, snapshot)`` publishes a report with verdicts, once, unless the text is another by then.

    ``busy`` says whether a check waits or runs: confirmations come after all of them.  ``tell(gpus, reason)``: for the
    status.
    """

    def __init__(self, take: Take, busy: Callable[[], bool], tell: Callable[[tuple[str, ...], str], None]) -> None:
        self._take = take
        self._busy = busy
        self._tell = tell
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def after(self, engine: EngineLike, snapshot: Snapshot, path: str, report: Report) -> None:
        """A document has its final report."""
        self.cancel(path)
        if not any(status.captures for status in report.launches) and not report.findings:
            return
        task = asyncio.ensure_future(self._later(engine, snapshot, path, report))
        self._tasks[path] = task
        task.add_done_callback(lambda done: self._ended(path, done))

    def cancel(self, path: str) -> None:
        """The text changed, or a newer check or confirmation has begun."""
        task = self._tasks.pop(path, None)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        for path in list(self._tasks):
            self.cancel(path)

    async def now(
        self, engine: EngineLike, snapshot: Snapshot, path: str, report: Report, *, launch: bool = False
    ) -> Confirmation:
        """Somebody waits for it."""
        self.cancel(path)
        confirmation = await engine.confirm(snapshot, path, report, launch=launch)
        self._say(path, snapshot, confirmation)
        return confirmation

    async def _later(self, engine: EngineLike, snapshot: Snapshot, path: str, report: Report) -> None:
        await asyncio.sleep(_PAUSE)
        while self._busy():
            await asyncio.sleep(_PAUSE)
        self._say(path, snapshot, await engine.confirm(snapshot, path, report))

    def _say(self, path: str, snapshot: Snapshot, confirmation: Confirmation) -> None:
        # No check takes from this report: it is the last one with something added.
        if confirmation.gpus:
            self._take(path, replace(confirmation.report, final=True), snapshot)
        self._tell(confirmation.gpus, confirmation.state)

    def _ended(self, path: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(path) is task:
            del self._tasks[path]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("A confirmation failed inside the server: %r. The results stay. Please report this.", error)
