"""Progress of a check that takes noticeably long, with a cancel button where the client has one."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types

logger = logging.getLogger(__name__)

AFTER = 0.5
"""Seconds before progress is shown: most checks are done by then."""
_CREATE_TIMEOUT = 5.0

Create = Callable[[types.WorkDoneProgressCreateParams], Awaitable[Any]]
Notify = Callable[[types.ProgressParams], None]


class ProgressBars:
    def __init__(self, create: Create, notify: Notify) -> None:
        self.enabled = False
        self._create = create
        self._notify = notify
        self._cancels: dict[int | str, Callable[[], object]] = {}

    def start(self, title: str, cancel: Callable[[], object]) -> ProgressBar:
        return ProgressBar(self, title, cancel)

    def cancelled(self, token: int | str) -> None:
        """The user pressed the cancel button."""
        cancel = self._cancels.pop(token, None)
        if cancel is not None:
            cancel()

    async def show(self, bar: ProgressBar) -> None:
        await asyncio.sleep(AFTER)
        token = str(uuid.uuid4())
        try:
            async with asyncio.timeout(_CREATE_TIMEOUT):
                await self._create(types.WorkDoneProgressCreateParams(token))
        except Exception as error:
            logger.debug("The client shows no progress: %r", error)
            return
        self._cancels[token] = bar.cancel
        self._notify(
            types.ProgressParams(
                token, types.WorkDoneProgressBegin(title=bar.title, cancellable=True, message=bar.message or None)
            )
        )
        bar.token = token

    def report(self, bar: ProgressBar) -> None:
        if bar.token is not None:
            value = types.WorkDoneProgressReport(cancellable=True, message=bar.message)
            self._notify(types.ProgressParams(bar.token, value))

    def end(self, bar: ProgressBar) -> None:
        if bar.token is not None:
            self._cancels.pop(bar.token, None)
            self._notify(types.ProgressParams(bar.token, types.WorkDoneProgressEnd()))
            bar.token = None


class ProgressBar:
    """One check's progress: a context manager that shows nothing unless the check lasts."""

    def __init__(self, bars: ProgressBars, title: str, cancel: Callable[[], object]) -> None:
        self.title = title
        self.cancel = cancel
        self.message = ""
        self.token: str | None = None
        self._bars = bars
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> ProgressBar:
        if self._bars.enabled:
            self._task = asyncio.ensure_future(self._bars.show(self))
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        self._bars.end(self)

    def report(self, message: str) -> None:
        self.message = message
        self._bars.report(self)
