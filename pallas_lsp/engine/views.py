"""A kernel's traced program or its lowered modules, as text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pallas_lsp.engine.codec import encode
from pallas_lsp.engine.errors import RunFailed
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.engine.pool import Pool
from pallas_lsp.engine.settings import Settings, Start
from pallas_lsp.model import Capture, Driver, Snapshot

_COUNTED = re.compile(r'mosaic_gpu\.dump_basename = "[^"]*"')
"""What numbers the modules of a process, so that two of one kernel differ."""
KINDS = ("jaxpr", "mlir", "ptx")
_ON_GPU = Start(platforms="cuda,cpu", nice=10)


@dataclass(frozen=True)
class View:
    """``target``: what was lowered for, empty for a traced program."""

    capture: Capture
    target: str
    text: str


@dataclass(frozen=True)
class Wanted:
    """``kind``: one of KINDS; ``ptx`` needs a GPU.  ``first`` and ``last``: the launch's lines, 1-based."""

    kind: str
    first: int
    last: int


@dataclass
class _Seen:
    outcome: Outcome = field(default_factory=Outcome)
    texts: list[tuple[str, str, str]] = field(default_factory=list)

    def receive(self, method: str, fields: dict[str, Any]) -> None:
        if method == "view":
            self.texts.append((fields["capture"], fields["target"], fields["text"]))
        else:
            self.outcome.receive(method, fields)

    def views(self) -> list[View]:
        found: dict[tuple[str, str, str], View] = {}
        for capture, target, text in self.texts:
            known = self.outcome.captures.get(capture)
            if known is not None:
                found.setdefault((known.arguments, target, _COUNTED.sub("", text)), View(known, target, text))
        return list(found.values())


@contextlib.asynccontextmanager
async def _pool_for(kind: str, pool: Pool, settings: Settings, log: Callable[[str], Any]) -> AsyncIterator[Pool]:
    """The pool for a run: PTX comes from a worker of its own that sees the GPU, and does not keep it."""
    if kind != "ptx":
        yield pool
        return
    environment = {**settings.environment, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    limits = replace(settings.limits, memory_bytes=0)  # CUDA reserves far more address space than it uses
    own = Pool(replace(settings, start=_ON_GPU, environment=environment, limits=limits), log)
    try:
        yield own
    finally:
        await own.close()


async def run_for_views(
    pool: Pool,
    settings: Settings,
    log: Callable[[str], Any],
    python: str,
    snapshot: Snapshot,
    path: str,
    drivers: Iterable[Driver],
    wanted: Wanted,
) -> tuple[list[View], str]:
    """The views, and why there is none or not all; raises WorkerUnavailable."""
    seen = _Seen()
    limits = settings.limits
    params = {
        "path": path,
        "documents": {each.path: each.text for each in snapshot.documents.values()},
        "roots": list(snapshot.roots),
        "drivers": [encode(driver) for driver in drivers],
        "targets": {backend: list(kinds) for backend, kinds in settings.targets.items()},
        "limits": {
            "memory_bytes": 0 if wanted.kind == "ptx" else limits.memory_bytes,
            "cpu_seconds": limits.cpu_seconds,
        },
        "stages": ["trace", "lower"],
        "launches": list(range(wanted.first, wanted.last + 1)),
        "views": {"kind": wanted.kind, "first": wanted.first, "last": wanted.last},
    }
    reason = ""
    async with _pool_for(wanted.kind, pool, settings, log) as chosen, chosen.worker(python) as worker:
        try:
            await worker.run(params, seen.receive, limits)
        except RunFailed as error:
            reason = f"the run {error.message}"
            log(f"{path}: {reason} while its kernel was shown")
    views = seen.views()
    if not views and not reason:
        faults = [fault.message.strip().partition("\n")[0] for fault in seen.outcome.faults.values()]
        stopped = [each.error for each in seen.outcome.drivers.values() if each.error]
        if faults:
            reason = f"the kernel was not traced to its end: {faults[0]}"
        elif stopped:
            reason = f"what would reach it stopped: {stopped[0]}"
    return views, reason
