"""One GPU's confirmer: the worker program with that GPU visible, one job at a time, behind everything else.

It is started for its first job and ended when there was none for a while, so that neither a process nor GPU memory is
left behind.  What killed it is not run again unchanged.

There are two ways to run a job: in a child that is forked without a GPU and starts it, about half a second; and, with
the setting ``warm``, in a spare process that started the GPU beforehand.  A spare serves one job, for the user's code
has run in it, so that a job that comes before the next one is ready is forked.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pallas_lsp.confirm.gpus import Gpu, Load, load
from pallas_lsp.confirm.jobs import UNFINISHED, Answer, Job, end_of, fault_of, take
from pallas_lsp.confirm.machine_lock import machine_lock
from pallas_lsp.confirm.remote import remote_start
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.engine.codec import encode
from pallas_lsp.engine.errors import RunFailed, WorkerUnavailable
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.engine.pool import Pool
from pallas_lsp.engine.runs import launch_lines
from pallas_lsp.engine.settings import Limits, Settings, Start
from pallas_lsp.model import WorkerInfo

_NICE = 19
_BUSY_PERCENT = 60
_FREE_BYTES = 2 << 30
_SHORTEST_WAIT, _LONGEST_WAIT = 0.5, 15.0
_MOST_RUNS = 6
_REMEMBERED = 64
_DEADLY = {"timed-out", "out-of-memory", "crashed", "exited"}


class Confirmer:
    """``gpu`` None: whatever GPU the settings' command comes to."""

    def __init__(
        self,
        gpu: Gpu | None,
        settings: ConfirmSettings,
        base: Settings,
        log: Log,
        load_of: Callable[[Gpu], Load | None] = load,
    ) -> None:
        self.gpu = gpu
        self.settings = settings
        self.waiting = 0
        self._log = log
        self._load_of = load_of
        self._base = base
        self._pool: Pool | None = None
        self._spares: Pool | None = None
        self._lock = asyncio.Lock()
        self._deadly: OrderedDict[str, Answer] = OrderedDict()
        self._idle: asyncio.TimerHandle | None = None
        self._ends: set[asyncio.Task[None]] = set()
        self._dropped = 0
        self._not_before = 0.0

    async def info(self, python: str) -> WorkerInfo:
        """What the interpreter behind this confirmer has; raises WorkerUnavailable."""
        return await self._started().info(python)

    async def run(self, job: Job) -> Answer:
        """Confirm one file; raises nothing but for a cancelled task, which ends the job."""
        if job.key in self._deadly:
            return self._deadly[job.key]
        self.waiting += 1
        try:
            async with self._lock, machine_lock(self.gpu.uuid if self.gpu is not None else None):
                if (reason := await self._until_free()) is not None:
                    return Answer("busy", reason)
                return await self._run(job)
        finally:
            self.waiting -= 1
            self._end_later()

    # -- the worker -------------------------------------------------------------------------------------------------

    def _started(self) -> Pool:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._pool is None:
            self._pool = Pool(self._worker_settings(warm=False), self._log)
        return self._pool

    def _ready(self, python: str) -> Pool:
        """The spares where one is ready, else the pool that forks; meanwhile a spare is made."""
        forking = self._started()
        if not self.settings.warm or self.settings.command:
            return forking
        if self._spares is None:
            self._spares = Pool(self._worker_settings(warm=True), self._log)
        ready = self._spares.ready(python)
        if not ready:
            self._spares.prepare(python)
        return self._spares if ready else forking

    def _worker_settings(self, *, warm: bool) -> Settings:
        environment = {
            **self._base.environment,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "JAX_COMPILATION_CACHE_DIR": "",  # a kernel that comes from a cache tells nothing of itself
        }
        if self.gpu is not None and self.gpu.uuid:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpu.uuid
            environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        limits = replace(
            self._base.limits,
            confirm_seconds=self.settings.seconds,
            launch_seconds=self.settings.launch_seconds,
            memory_bytes=0,  # CUDA reserves far more address space than it uses
        )
        start = Start(platforms="cuda,cpu", nice=_NICE, warm=warm)
        if self.settings.command:
            start = remote_start(self.settings.command, start, environment)
        return replace(self._base, environment=environment, limits=limits, start=start, fork=not warm, figures=False)

    def _end_later(self) -> None:
        """End the worker unless another job comes soon."""
        if self.waiting or self._pool is None:
            return
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(self.settings.idle_seconds, self._end)

    def _end(self) -> None:
        pools, self._pool, self._spares = (self._pool, self._spares), None, None
        for pool in pools:
            if pool is not None:
                task = asyncio.ensure_future(pool.close())
                self._ends.add(task)
                task.add_done_callback(self._ends.discard)

    async def aclose(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._end()
        if self._ends:
            await asyncio.wait(set(self._ends))

    # -- waiting ----------------------------------------------------------------------------------------------------

    async def _until_free(self) -> str | None:
        """Wait while others use the GPU; the reason where that takes too long."""
        if self.gpu is None:
            return None
        loop = asyncio.get_running_loop()
        end = loop.time() + self.settings.patience
        pause = _SHORTEST_WAIT
        while (reason := await self._busy()) is not None:
            if loop.time() + pause > end:
                return reason
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_WAIT)
        return None

    async def _busy(self) -> str | None:
        assert self.gpu is not None
        found = await asyncio.to_thread(self._load_of, self.gpu)
        if found is None:
            return None
        if found.free_bytes < min(_FREE_BYTES, self.gpu.memory_bytes // 4 or _FREE_BYTES):
            return f"{self.gpu.name} has only {found.free_bytes >> 20} MiB of free memory"
        if found.utilisation > _BUSY_PERCENT:
            return f"{self.gpu.name} is {found.utilisation} % busy with other work"
        return None

    # -- jobs -------------------------------------------------------------------------------------------------------

    async def _run(self, job: Job) -> Answer:
        loop = asyncio.get_running_loop()
        if self.settings.command and loop.time() < self._not_before:
            return Answer("unreachable", "the command did not reach its GPU a moment ago")
        answer = Answer("done")
        known = set(job.known)
        restarted = False
        for _ in range(_MOST_RUNS):
            outcome = Outcome()
            pool = self._ready(job.python)
            forks = pool is self._pool
            try:
                await self._once(pool, job, known, outcome)
                failure = None
            except WorkerUnavailable as error:
                return self._unreachable(error.message)
            except RunFailed as error:
                failure = error
                self._log(f"{job.path}: a confirmation {error.message}\n{error.detail}")
            take(answer, outcome)
            if failure is None:
                break
            if failure.worker and self.settings.command:
                return self._unreachable(f"the connection was dropped: it {failure.message}")
            if failure.worker and forks and not restarted:
                restarted = True  # a zygote that dies was ended from outside
                continue
            if not self._overcome(failure, outcome, answer, known):
                answer.state, answer.detail = "failed", f"it {failure.message}"
                self._remember(job, answer, failure)
                break
        self._dropped = 0
        device = answer.outcome.device
        if device is not None and device.get("gpu") is None:
            return Answer("no GPU", str(device.get("reason") or ""))
        return answer

    async def _once(self, pool: Pool, job: Job, known: set[str], outcome: Outcome) -> None:
        def on_event(method: str, fields: dict[str, Any]) -> None:
            try:
                outcome.receive(method, fields)
            except (ValueError, KeyError) as error:
                self._log(f"a message of the confirmer was left out: {error}")

        async with pool.worker(job.python) as worker:
            await worker.run(
                self._params(job, known), on_event, _limits(worker_limits(self._base.limits, self.settings))
            )

    def _params(self, job: Job, known: set[str]) -> dict[str, Any]:
        documents = {each.path: each.text for each in job.snapshot.documents.values()}
        if self.settings.command:
            documents = {**job.texts, **documents}
        return {
            "path": job.path,
            "documents": documents,
            "roots": list(job.snapshot.roots),
            "drivers": [encode(driver) for driver in job.drivers],
            "targets": {backend: list(kinds) for backend, kinds in job.targets.items()},
            "limits": {"memory_bytes": 0, "cpu_seconds": self._base.limits.cpu_seconds},
            "stages": ["trace", "lower"],
            "launches": launch_lines(job.snapshot, job.path),
            "confirm": {"known": sorted(known), "launch": job.launch, "dumps": self.settings.dumps},
        }

    def _overcome(self, failure: RunFailed, outcome: Outcome, answer: Answer, known: set[str]) -> bool:
        """Whether the next run can leave out the kernel that ended this one; what became of it is noted."""
        capture = outcome.captures.get(outcome.capture or "")
        if capture is None or outcome.stage not in ("confirm", "launch") or failure.kind not in _DEADLY:
            return False
        programs = capture.resources.get("programs") or {}
        ended = {digest: entry for digest, entry in programs.items() if entry.get("state") in UNFINISHED}
        if failure.kind == "exited":
            # After a failed launch the GPU is of no use to the process, which ends itself.
            failed = [digest for digest, entry in programs.items() if entry.get("state") == "launch failed"]
            known.update(failed)
            return bool(failed)
        for digest, entry in ended.items():
            known.add(digest)
            answer.programs[digest] = {**entry, **end_of(failure, outcome.stage, self.settings)}
            fault = fault_of(failure, outcome.stage, capture, self.settings)
            if fault is not None:
                answer.outcome.faults[fault.id] = fault
        return bool(ended)

    def _remember(self, job: Job, answer: Answer, failure: RunFailed) -> None:
        if failure.kind in _DEADLY:
            self._deadly[job.key] = answer
            while len(self._deadly) > _REMEMBERED:
                self._deadly.popitem(last=False)

    def _unreachable(self, reason: str) -> Answer:
        """No worker: try again only after a while that grows, where it is another machine's."""
        if self.settings.command:
            self._dropped += 1
            self._not_before = asyncio.get_running_loop().time() + min(2.0**self._dropped, 300.0)
        self._end()
        return Answer("unreachable" if self.settings.command else "failed", reason)


def worker_limits(base: Limits, settings: ConfirmSettings) -> Limits:
    return replace(base, confirm_seconds=settings.seconds, launch_seconds=settings.launch_seconds)


def _limits(limits: Limits) -> Limits:
    # Starting a GPU takes long where others use it, and comes under the name of its own stage.
    return replace(limits, trace_seconds=max(limits.trace_seconds, 60.0))


def environment_flags(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The settings of the GPU's compiler that the environment brings: part of what a verdict depends on."""
    return tuple(f"{name}={environ[name]}" for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS") if environ.get(name))
