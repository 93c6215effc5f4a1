"""One engine for each set of folder settings, made when it is first needed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pallas_lsp.model import Finding, Fix, Report, Snapshot, WorkerInfo
from pallas_lsp.server.settings import FolderSettings

if TYPE_CHECKING:
    from pallas_lsp.confirm.confirmation import Confirmation
    from pallas_lsp.engine.views import View, Wanted

logger = logging.getLogger(__name__)

OnReport = Callable[[Report], None]


class EngineLike(Protocol):
    """What the server asks of an engine (``pallas_lsp.engine.Engine``; tests bring their own)."""

    on_environment_change: Callable[[], None]

    async def check(
        self, snapshot: Snapshot, path: str, on_report: OnReport | None = None, *, run: bool = True
    ) -> Report: ...

    async def verify(
        self, snapshot: Snapshot, path: str, finding: Finding, fix: Fix, before: Report | None = None
    ) -> Fix: ...

    async def further(self, snapshot: Snapshot, path: str, report: Report) -> Report: ...

    async def views(self, snapshot: Snapshot, path: str, wanted: Wanted) -> tuple[list[View], str]: ...

    async def confirm(self, snapshot: Snapshot, path: str, report: Report, *, launch: bool = False) -> Confirmation: ...

    def forget(self, path: str) -> None: ...

    def renew(self, path: str) -> None: ...

    async def worker_info(self, path: str, roots: tuple[str, ...] = ()) -> WorkerInfo: ...

    async def aclose(self) -> None: ...


EngineFactory = Callable[[FolderSettings], EngineLike]


class Engines:
    """``changed(settings)`` is called when the Python environment of an engine did."""

    def __init__(self, make: EngineFactory, changed: Callable[[FolderSettings], None]) -> None:
        self._make = make
        self._changed = changed
        self._engines: dict[FolderSettings, EngineLike] = {}

    def get(self, settings: FolderSettings) -> EngineLike:
        if settings not in self._engines:
            self._engines[settings] = engine = self._make(settings)
            engine.on_environment_change = lambda: self._changed(settings)
        return self._engines[settings]

    async def keep(self, settings: set[FolderSettings]) -> None:
        """End the engines that no folder uses any more."""
        await self._close([key for key in self._engines if key not in settings])

    async def close(self, timeout: float = 3.0) -> None:
        """End all workers.  Later checks make new engines."""
        await self._close(list(self._engines), timeout)

    async def _close(self, keys: list[FolderSettings], timeout: float = 3.0) -> None:
        engines = [self._engines.pop(key) for key in keys]
        if not engines:
            return
        tasks = [asyncio.ensure_future(engine.aclose()) for engine in engines]
        done, late = await asyncio.wait(tasks, timeout=timeout)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.warning("A worker did not end as it should: %s", error)
        for task in late:
            task.cancel()
            logger.warning("A worker did not end within %.0f s and is left to notice its closed input.", timeout)


def make_engine(settings: FolderSettings) -> EngineLike:
    from pallas_lsp.engine import Engine

    worker_log = logging.getLogger("pallas_lsp.worker")
    return Engine(settings.engine(), log=lambda text: worker_log.info("%s", text))
