"""Workers by interpreter: one zygote each, or, without fork, one spare that is imported beforehand."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from functools import cache, partial
from pathlib import Path

from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.known_interpreters import Known, KnownInterpreters, changed
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.process import PROGRAM, Worker
from pallas_lsp.engine.settings import Settings
from pallas_lsp.model import WorkerInfo
from pallas_lsp.rules.base import registry

_OLDEST_JAX = (0, 10)
_REMEMBERED = 5.0
"""Seconds for which an interpreter that did not work is not tried again."""
_LIVED = 5.0
"""Seconds after which a worker that dies is replaced at once: one that dies sooner may do so again and again."""


class _Slot:
    """The worker of one interpreter that waits for, or (forking) serves, runs."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.ready: Worker | None = None
        self.refill: asyncio.Task[None] | None = None
        self.failed: tuple[float, WorkerUnavailable] | None = None
        self.watched: dict[str, int] = {}
        """The interpreter and its folders of packages, as they were when a worker was started last."""
        self.users = 0


class Pool:
    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings = settings
        self._log = log
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._closing = False
        self._used: set[Worker] = set()
        self._ends: set[asyncio.Task[None]] = set()
        program = program_stamp(settings.worker or PROGRAM)
        self._known = KnownInterpreters(settings.kept, settings.environment, program) if settings.kept else None
        self._program = program

    async def info(self, python: str) -> WorkerInfo:
        """What the interpreter has; raises WorkerUnavailable."""
        return (await self._knowledge(python)).info

    async def _knowledge(self, python: str) -> Known:
        """From a worker, or from an earlier one of the same interpreter: then another is started for what comes."""
        slot = self._slot(python)
        if self._known is not None and slot.ready is None and (known := self._known.get(python)) is not None:
            self.prepare(python)
            return known
        async with slot.lock:
            worker = await self._ready(python, slot)
        assert worker.info is not None
        return Known(worker.info, worker.stamps)

    async def surroundings(self, python: str) -> tuple[object, ...]:
        """What of the interpreter the results of a run depend on; raises WorkerUnavailable."""
        known = await self._knowledge(python)
        return known.info, known.stamps, self._program

    @contextlib.asynccontextmanager
    async def worker(self, python: str) -> AsyncIterator[Worker]:
        """A worker for one run; raises WorkerUnavailable."""
        slot = self._slot(python)
        slot.users += 1
        try:
            async with slot.lock:
                worker = await self._ready(python, slot)
                if not worker.forks:
                    slot.ready = None
                    self._refill(python, slot)
                    self._used.add(worker)
            try:
                yield worker
            finally:
                if not worker.forks:
                    self._used.discard(worker)
                    # Not awaited: a cancelled check must not wait for it, nor leave it.
                    self._spawn(self._end(worker))
        finally:
            slot.users -= 1
            self._evict()

    def ready(self, python: str) -> bool:
        """Whether a worker of an interpreter could begin a run at once."""
        slot = self._slots.get(python)
        return slot is not None and slot.ready is not None and slot.ready.alive and not slot.ready.outdated

    def stamps(self, python: str) -> dict[str, int]:
        """When what an interpreter's packages depend on changed last, as far as a worker told."""
        slot = self._slots.get(python)
        return _stamps(slot.watched if slot is not None else [python])

    def watched(self, python: str) -> dict[str, int]:
        """The same as it was when a worker of the interpreter was started last."""
        slot = self._slots.get(python)
        return slot.watched if slot is not None else {}

    def prepare(self, python: str) -> None:
        """Start a worker for a later run; what goes wrong shows then."""
        slot = self._slot(python)
        if slot.refill is None or slot.refill.done():
            self._refill(python, slot)

    def _slot(self, python: str) -> _Slot:
        if self._closing:
            raise WorkerUnavailable("interpreter-broken", "the checker is ending", "Start it again.")
        slot = self._slots.setdefault(python, _Slot())
        self._slots.move_to_end(python)
        return slot

    async def _ready(self, python: str, slot: _Slot) -> Worker:
        """The slot's worker, started anew where it died or its packages changed; call with the lock held."""
        worker = slot.ready
        if worker is not None and (not worker.alive or worker.outdated):
            slot.ready = None
            # Runs in it go on; a zygote ends once they have.
            self._spawn(self._end_when_idle(worker))
        if slot.ready is None:
            recent = slot.failed is not None and time.monotonic() - slot.failed[0] < _REMEMBERED
            if slot.failed is not None and recent and _stamps(slot.watched) == slot.watched:
                raise slot.failed[1]
            slot.ready = await self._start(python, slot)
        return slot.ready

    def _died(self, python: str, slot: _Slot, worker: Worker, since: float, how: str) -> None:
        """A zygote ended though nobody asked it to: the next check shall not have to wait for a new one."""
        self._log(f"the worker {how}; it is started again")
        self._spawn(self._end(worker))
        if slot.ready is worker and not self._closing:
            slot.ready = None
            if time.monotonic() - since >= _LIVED:
                self.prepare(python)

    async def _start(self, python: str, slot: _Slot) -> Worker:
        settings = self._settings
        environment = dict(settings.environment)
        if not settings.fork:
            environment["PALLAS_LSP_FORK"] = "0"
        slot.failed = None
        slot.watched = _stamps([python])
        # While jax is imported there: reading all rules takes a good part of a second, and the first report needs them.
        asyncio.get_running_loop().run_in_executor(None, registry)
        try:
            worker = await Worker.start(
                python,
                environment=environment,
                log=self._log,
                limits=settings.limits,
                program=settings.worker,
                how=settings.start,
            )
            slot.watched.update(worker.stamps)
            try:
                _check(worker)
            except WorkerUnavailable:
                await self._end(worker)
                raise
        except WorkerUnavailable as error:
            slot.failed = (time.monotonic(), error)
            raise
        if self._known is not None and worker.info is not None:
            self._known.put(python, worker.info, worker.stamps)
        if worker.forks:
            worker.on_death = partial(self._died, python, slot, worker, time.monotonic())
        return worker

    def _refill(self, python: str, slot: _Slot) -> None:
        async def refill() -> None:
            async with slot.lock:
                for again in (True, False):
                    if slot.ready is not None or self._closing:
                        return
                    try:
                        slot.ready = await self._start(python, slot)
                    except WorkerUnavailable as error:
                        if not (again and "ended by SIG" in error.message):  # somebody killed it while it started
                            return

        slot.refill = self._spawn(refill())

    def _spawn(self, work: object) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        return task

    async def _end(self, worker: Worker) -> None:
        with contextlib.suppress(Exception):
            await worker.close()

    async def _end_when_idle(self, worker: Worker) -> None:
        while worker.alive and worker.busy and not self._closing:
            await asyncio.sleep(0.2)
        await self._end(worker)

    def _evict(self) -> None:
        """Keep the interpreters used last."""
        for python, slot in list(self._slots.items()):
            if len(self._slots) <= self._settings.interpreters:
                return
            if slot.users == 0 and not slot.lock.locked():
                del self._slots[python]
                if slot.ready is not None:
                    self._spawn(self._end(slot.ready))

    async def close(self) -> None:
        """End all workers."""
        self._closing = True
        for slot in self._slots.values():
            if slot.refill is not None:
                slot.refill.cancel()
        if self._ends:
            await asyncio.wait(set(self._ends), timeout=10)
        kept = {slot.ready for slot in self._slots.values() if slot.ready is not None}
        await asyncio.gather(*(self._end(worker) for worker in kept | self._used))
        self._slots.clear()


@cache
def program_stamp(program: str) -> str:
    """A digest of when the worker's own code changed last."""
    files = sorted(Path(program).rglob("*.py")) if Path(program).is_dir() else [Path(program)]
    digest = hashlib.sha256()
    for file in files:
        status = file.stat()
        digest.update(f"{file.name} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()


def _stamps(paths: Iterable[str]) -> dict[str, int]:
    return {path: changed(path) for path in paths}


def _check(worker: Worker) -> None:
    """Whether the interpreter's jax can be used; raises WorkerUnavailable."""
    info = worker.info
    assert info is not None
    if info.jax is None:
        reason = info.missing.get("jax", "")
        absent = not reason or "No module named 'jax'" in reason
        if absent:
            raise WorkerUnavailable(
                "no-jax",
                f"{worker.python} has no jax",
                f"Install it there ({worker.python} -m pip install jax), or choose the project's own interpreter with "
                "the setting 'python' (or --python).",
            )
        raise WorkerUnavailable(
            "no-jax",
            f"jax cannot be imported in {worker.python}: {reason}",
            f"Repair the installation ({worker.python} -m pip install --upgrade jax), or choose another interpreter.",
        )
    if _version(info.jax) < _OLDEST_JAX:
        raise WorkerUnavailable(
            "jax-too-old",
            f"{worker.python} has jax {info.jax}; Pallas kernels are checked from jax 0.10 on",
            f"Upgrade it there ({worker.python} -m pip install --upgrade jax), or choose another interpreter.",
        )


def _version(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split(".")[:2]:
        digits = "".join(c for c in part if c.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)
