"""Checking every file of the workspace that launches kernels, open or not."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lsp.discovery.index import Index
from pallas_lsp.model import Snapshot
from pallas_lsp.source.launches import may_launch
from pallas_lsp.source.workspace import read_text

if TYPE_CHECKING:
    from pallas_lsp.server.app import PallasServer

logger = logging.getLogger(__name__)


@dataclass
class Count:
    files: int = 0
    findings: int = 0
    unchecked: int = 0
    untrusted: int = 0

    def sentence(self) -> str:
        if not self.files and not self.untrusted:
            return "no file of the workspace launches a kernel."
        parts = [f"{_many(self.files, 'file')} checked, {_many(self.findings, 'finding')}"]
        if self.unchecked:
            parts.append(f"{_many(self.unchecked, 'file')} with a launch that was not reached (the log says why)")
        if self.untrusted:
            parts.append(f"{_many(self.untrusted, 'file')} only read, since the folder is not trusted")
        return "; ".join(parts) + "."


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class Sweep:
    """``run`` once at a time; the second caller waits for the same results."""

    def __init__(self, server: PallasServer) -> None:
        self._server = server
        self._running: asyncio.Task[Count] | None = None

    async def run(self) -> Count:
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._run())
        return await asyncio.shield(self._running)

    def cancel(self) -> bool:
        return self._running is not None and self._running.cancel()

    async def _run(self) -> Count:
        server, count = self._server, Count()
        snapshot = server.documents.snapshot()
        paths = await asyncio.to_thread(_with_launches, snapshot)
        with server.bars.start("Checking the workspace", self.cancel) as bar:
            for number, path in enumerate(paths, 1):
                bar.report(f"{number}/{len(paths)} {Path(path).name}")
                if not server.consent.allows(server.documents.root_of(path)):
                    count.untrusted += 1
                    continue
                await self._check(path)
                result = server.results.get(path)
                count.files += 1
                count.findings += len(result.found) if result is not None else 0
                count.unchecked += result is not None and result.reached < len(result.launches)
        return count

    async def _check(self, path: str) -> None:
        server = self._server
        if server.documents.at(path) is None:
            await server.checker.check_closed(path)
        else:
            server.scheduler.request(path)
            await server.scheduler.settled(path, 600.0)


def _with_launches(snapshot: Snapshot) -> list[str]:
    """The files that may launch kernels, each once, by the client's paths where it has them open."""
    open_paths = {str(Path(path).resolve()): path for path in snapshot.documents}
    found: dict[str, None] = {}
    for root in snapshot.roots:
        index = Index(root)
        index.refresh(snapshot, 0.0)
        for path, entry in index.entries.items():
            if not entry.imports:
                continue
            shown = open_paths.get(path, path)
            if index.root != root and shown.startswith(index.root):
                shown = root + shown[len(index.root) :]  # the client's spelling, where a link leads to the folder
            try:
                if may_launch(read_text(snapshot, shown)):
                    found[shown] = None
            except (OSError, ValueError, SyntaxError, LookupError) as error:
                logger.info("%s is left out: %s", shown, error)
    return sorted(found)
