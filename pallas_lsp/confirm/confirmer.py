"""One GPU's confirmer: the worker program with that GPU visible, one job at a time, behind everything else.

It is started for its first job and ended when there was none for a while, so that neither a process nor GPU memory is
left behind.  What killed it is not run again unchanged.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pallas_lsp.confirm.gpus import Gpu, Load, load
from pallas_lsp.confirm.machine_lock import machine_lock
from pallas_lsp.confirm.remote import remote_start
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.engine.codec import encode_driver
from pallas_lsp.engine.errors import RunFailed, WorkerUnavailable
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.engine.pool import Pool
from pallas_lsp.engine.settings import Limits, Settings, Start
from pallas_lsp.model import Anchor, Capture, Driver, Fault, Snapshot, Stage, WorkerInfo

_NICE = 19
_BUSY_PERCENT = 60
_FREE_BYTES = 2 << 30
_SHORTEST_WAIT, _LONGEST_WAIT = 0.5, 15.0
_MOST_RUNS = 6
_REMEMBERED = 64
_DEADLY = {"timed-out", "out-of-memory", "crashed", "exited"}

LAUNCH_TIMED_OUT = "pallas_lsp.LaunchTimedOut"
COMPILER_CRASHED = "pallas_lsp.CompilerCrashed"


@dataclass(frozen=True)
class Job:
    """One file's kernels.  ``known``: the digests of programs whose fate is known; ``key`` names the texts."""

    python: str
    snapshot: Snapshot
    path: str
    drivers: tuple[Driver, ...]
    texts: Mapping[str, str]
    targets: Mapping[str, tuple[str, ...]]
    key: str
    known: frozenset[str] = frozenset()


@dataclass
class Answer:
    """``state``: ``done``; ``no GPU``, ``busy``, ``unreachable`` or ``failed`` with the reason in ``detail``.

    ``programs``: what became of each program, by its digest.
    """

    state: str
    detail: str = ""
    outcome: Outcome = field(default_factory=Outcome)
    programs: dict[str, dict[str, Any]] = field(default_factory=dict)
    gpu: dict[str, Any] = field(default_factory=dict)


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
            self._pool = Pool(self._worker_settings(), self._log)
        return self._pool

    def _worker_settings(self) -> Settings:
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
        start = Start(platforms="cuda,cpu", nice=_NICE, warm=self.settings.warm)
        if self.settings.command:
            start = remote_start(self.settings.command, start, environment)
        return replace(
            self._base, environment=environment, limits=limits, start=start, fork=not self.settings.warm, figures=False
        )

    def _end_later(self) -> None:
        """End the worker unless another job comes soon."""
        if self.waiting or self._pool is None:
            return
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(self.settings.idle_seconds, self._end)

    def _end(self) -> None:
        pool, self._pool = self._pool, None
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
            try:
                await self._once(job, known, outcome)
                failure = None
            except WorkerUnavailable as error:
                return self._unreachable(error.message)
            except RunFailed as error:
                failure = error
                self._log(f"{job.path}: a confirmation {error.message}\n{error.detail}")
            _take(answer, outcome)
            if failure is None:
                break
            if failure.worker and self.settings.command:
                return self._unreachable(f"the connection was dropped: it {failure.message}")
            if failure.worker and not self.settings.warm and not restarted:
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

    async def _once(self, job: Job, known: set[str], outcome: Outcome) -> None:
        def on_event(method: str, fields: dict[str, Any]) -> None:
            try:
                outcome.receive(method, fields)
            except (ValueError, KeyError) as error:
                self._log(f"a message of the confirmer was left out: {error}")

        async with self._started().worker(job.python) as worker:
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
            "drivers": [encode_driver(driver) for driver in job.drivers],
            "targets": {backend: list(kinds) for backend, kinds in job.targets.items()},
            "limits": {"memory_bytes": 0, "cpu_seconds": self._base.limits.cpu_seconds},
            "stages": ["trace", "lower"],
            "confirm": {"known": sorted(known), "launch": self.settings.launch, "dumps": self.settings.dumps},
        }

    def _overcome(self, failure: RunFailed, outcome: Outcome, answer: Answer, known: set[str]) -> bool:
        """Whether the next run can leave out the kernel that ended this one; what became of it is noted."""
        capture = outcome.captures.get(outcome.capture or "")
        if capture is None or outcome.stage not in ("confirm", "launch") or failure.kind not in _DEADLY:
            return False
        programs = capture.resources.get("programs") or {}
        ended = {digest: entry for digest, entry in programs.items() if entry.get("state") in _UNFINISHED}
        if failure.kind == "exited":
            # After a failed launch the GPU is of no use to the process, which ends itself.
            failed = [digest for digest, entry in programs.items() if entry.get("state") == "launch failed"]
            known.update(failed)
            return bool(failed)
        for digest, entry in ended.items():
            known.add(digest)
            answer.programs[digest] = {**entry, **_end_of(failure, outcome.stage, self.settings)}
            fault = _fault(failure, outcome.stage, capture, self.settings)
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


_UNFINISHED = ("running", "launching")


def worker_limits(base: Limits, settings: ConfirmSettings) -> Limits:
    return replace(base, confirm_seconds=settings.seconds, launch_seconds=settings.launch_seconds)


def _limits(limits: Limits) -> Limits:
    # Starting a GPU takes long where others use it, and comes under the name of its own stage.
    return replace(limits, trace_seconds=max(limits.trace_seconds, 60.0))


def _take(answer: Answer, outcome: Outcome) -> None:
    """Add what a run brought to what earlier runs of the same job did; ids are the same in both."""
    answer.outcome.captures.update(outcome.captures)
    answer.outcome.drivers.update(outcome.drivers)
    answer.outcome.faults.update({f"{number}": fault for number, fault in _numbered(answer.outcome, outcome)})
    answer.outcome.device = outcome.device or answer.outcome.device
    answer.gpu = (outcome.device or {}).get("gpu") or answer.gpu
    for capture in outcome.captures.values():
        for digest, entry in (capture.resources.get("programs") or {}).items():
            if entry.get("state") not in (*_UNFINISHED, "known"):
                answer.programs[digest] = dict(entry)


def _numbered(before: Outcome, outcome: Outcome) -> list[tuple[str, Fault]]:
    """The faults that earlier runs did not tell, under ids that they did not use."""
    told = {(fault.capture, fault.stage, fault.message, fault.anchors[:1]) for fault in before.faults.values()}
    found: list[tuple[str, Fault]] = []
    for fault in outcome.faults.values():
        if (fault.capture, fault.stage, fault.message, fault.anchors[:1]) not in told:
            number = f"{fault.id}~{len(before.faults) + len(found)}"
            found.append((number, replace(fault, id=number)))
    return found


def _end_of(failure: RunFailed, stage: str, settings: ConfirmSettings) -> dict[str, Any]:
    if failure.kind == "timed-out":
        seconds = settings.seconds if stage == "confirm" else settings.launch_seconds
        return {"state": "timed out" if stage == "confirm" else "launch timed out", "seconds": seconds}
    return {"state": "crashed" if stage == "confirm" else "launch failed", "detail": failure.message}


def _fault(failure: RunFailed, stage: str, capture: Capture, settings: ConfirmSettings) -> Fault | None:
    """What the end of a process says of the kernel that it was at; None where it says nothing."""
    if failure.kind == "timed-out" and stage == "launch":
        exception = LAUNCH_TIMED_OUT
        message = f"the kernel did not end within {settings.launch_seconds:g} s"
    elif failure.kind == "crashed" and stage == "confirm":
        exception, message = COMPILER_CRASHED, f"the GPU's compiler was {failure.message}"
    else:
        return None
    places = tuple(frame for frame in (capture.launch, capture.call) if frame is not None)
    return Fault(
        id=f"{capture.id}-{exception}",
        stage=Stage.CONFIRM,
        exception=exception,
        message=message,
        driver=capture.driver,
        anchors=(Anchor("launch", places[:1]),) if places else (),
        capture=capture.id,
    )


def environment_flags(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The settings of the GPU's compiler that the environment brings: part of what a verdict depends on."""
    return tuple(f"{name}={environ[name]}" for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS") if environ.get(name))
