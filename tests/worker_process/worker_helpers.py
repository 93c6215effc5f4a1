"""What the tests of worker processes share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path

from pallas_lsp.engine.process import Worker
from pallas_lsp.engine.settings import Limits

FAKE = str(Path(__file__).parent / "fake_worker")
LIMITS = Limits(start_seconds=30, import_seconds=20, trace_seconds=20, lower_seconds=20, cpu_seconds=60)


class Started:
    """A worker with what it logged and told."""

    def __init__(self, worker: Worker, log: list[str]) -> None:
        self.worker = worker
        self.log = log
        self.events: list[tuple[str, dict]] = []

    async def run(self, code: str, limits: Limits = LIMITS, **more):
        params = {
            "path": "/x.py",
            "documents": {"/x.py": code},
            "limits": {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds},
            **more,
        }
        return await self.worker.run(params, lambda method, fields: self.events.append((method, fields)), limits)

    async def logged(self, text: str) -> bool:
        for _ in range(1000):
            if any(text in line for line in self.log):
                return True
            await asyncio.sleep(0.02)
        return False


@contextlib.asynccontextmanager
async def started(python: str, *, fork: bool = True, limits: Limits = LIMITS, **environment: str):
    log: list[str] = []
    variables = {**environment, **({} if fork else {"PALLAS_LSP_FORK": "0"})}
    worker = await Worker.start(python, environment=variables, log=log.append, limits=limits, program=FAKE)
    try:
        yield Started(worker, log)
    finally:
        await worker.close()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc/self").exists()
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_gone(*pids: int, seconds: float = 10.0) -> list[int]:
    """The processes that are still alive after a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        left = [pid for pid in pids if alive(pid)]
        if not left:
            return []
        time.sleep(0.02)
    return left
