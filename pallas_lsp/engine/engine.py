"""The engine: a frozen snapshot in; findings, launches and problems out.  Server and command line share it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pallas_lsp.engine.absent import with_stand_ins
from pallas_lsp.engine.elsewhere import Elsewhere, unreached
from pallas_lsp.engine.environment import EnvironmentWatch
from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.interpreter import find_interpreter
from pallas_lsp.engine.judge import judge, read_ahead
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.engine.pool import Pool
from pallas_lsp.engine.reading import CannotRead, Reading, read
from pallas_lsp.engine.runs import Runner
from pallas_lsp.engine.settings import Settings
from pallas_lsp.engine.statuses import NO_DRIVER, problem_of, remedy_for, statuses, stopped_problems
from pallas_lsp.engine.views import View, Wanted, run_for_views
from pallas_lsp.model import (
    Backend,
    Driver,
    Finding,
    Fix,
    LaunchStatus,
    Location,
    Problem,
    Report,
    Snapshot,
    Stage,
    WorkerInfo,
)
from pallas_lsp.rules.context import Context
from pallas_lsp.source.drivers import driver_range

if TYPE_CHECKING:
    from pallas_lsp.confirm.confirmation import Confirmation, Confirmations

OnReport = Callable[[Report], Any]

_ENDING = WorkerUnavailable("interpreter-broken", "the checker is ending", "Start it again.")
_BACKEND_REMEDIES = {
    Backend.MOSAIC_GPU: "Install what it needs there (jax 0.10.2 needs absl-py and does not say so).",
}


class Engine:
    """Checks files.  Bind it to one running event loop; end it with ``aclose``."""

    def __init__(self, settings: Settings | None = None, log: Log | None = None) -> None:
        self.settings = settings or Settings()
        self._log = log or (lambda _: None)
        self._pool = Pool(self.settings, self._log)
        self._jobs = asyncio.Semaphore(max(1, self.settings.jobs))
        # One thread: what keeps the parser's warnings quiet is not safe in several at once.
        self._closed = False
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pallas-lsp-read")
        self._runner = Runner(self.settings, self._pool, self._threads, self._log)
        self._elsewhere = Elsewhere(self._threads, self._log)
        self._confirmations: Confirmations | None = None
        self.on_environment_change: Callable[[], None] = lambda: None
        """Called when packages or an interpreter changed, so that what was checked may be otherwise now."""
        self._environments = EnvironmentWatch(self.interpreter, self._pool, self._environment_changed)

    async def check(
        self, snapshot: Snapshot, path: str, on_report: OnReport | None = None, *, run: bool = True
    ) -> Report:
        """Check one file of a snapshot; never raises but for a cancelled task.

        ``on_report`` gets a Report when all launches that the drivers reach were traced, and the final one, which is
        returned too.  Cancelling the task ends the run.  With ``run`` False the file is only read: none of its code
        is executed.
        """
        if run and not self._closed:
            self._environments.checked(os.path.dirname(path), path, snapshot.roots)  # noqa: PTH120
        async with self._jobs:
            check = _Check(self, snapshot, os.path.abspath(path), on_report)  # noqa: PTH100 - links stay as they are
            report = await check.run(execute=run)
        if on_report is not None:
            on_report(report)
        return report

    async def verify(
        self, snapshot: Snapshot, path: str, finding: Finding, fix: Fix, before: Report | None = None
    ) -> Fix:
        """Try a fix: the edited text is checked; see ``verify``.  ``before``: the report that ``finding`` is from."""
        from pallas_lsp.engine.verify import verify

        return await verify(self, snapshot, path, finding, fix, before)

    async def confirm(self, snapshot: Snapshot, path: str, report: Report, *, launch: bool = False) -> Confirmation:
        """What GPUs say of a final report on a snapshot; never raises but for a cancelled task, which ends the job.

        ``launch``: also run the kernels once, though the settings only have them compiled.
        """
        from pallas_lsp.confirm.confirmation import Confirmation, Confirmations, Subject

        if self.settings.confirm is None or self._closed:
            return Confirmation(report)
        path = os.path.abspath(path)  # noqa: PTH100 - as in the report, or no finding meets its twin
        if self._confirmations is None:
            self._confirmations = Confirmations(self.settings.confirm, self.settings, self._log)
        loop = asyncio.get_running_loop()
        try:
            reading = await loop.run_in_executor(self._threads, read, snapshot, path, self.settings.longest)
            drivers = reading.drivers + await self._elsewhere.known(snapshot, path)
            if not drivers or report.stage is Stage.READ:
                return Confirmation(report)
            python = self.interpreter(path, snapshot.roots)
            info = await self._pool.info(python)
        except (CannotRead, WorkerUnavailable):
            return Confirmation(report)
        subject = Subject(python, info, snapshot, path, drivers, reading.texts, report, launch)
        return await self._confirmations.confirm(subject)

    async def views(self, snapshot: Snapshot, path: str, wanted: Wanted) -> tuple[list[View], str]:
        """What the kernel of a launch became, and why there is nothing or not all to see; runs the file's code."""
        loop = asyncio.get_running_loop()
        try:
            reading = await loop.run_in_executor(self._threads, read, snapshot, path, self.settings.longest)
            drivers = reading.drivers + await self._elsewhere.known(snapshot, path)
            python = self.interpreter(path, snapshot.roots)
            await self._pool.info(python)
            ask = (self._pool, self.settings, self._log, python, snapshot, path)
            views, reason = await run_for_views(*ask, drivers, wanted)
            if not views and not reason and self.settings.guess:
                launches = [each for each in reading.launches if each.location.range.start.line + 1 == wanted.first]
                guessed = await self._elsewhere.guesses(snapshot, path, launches)
                views, reason = await run_for_views(*ask, guessed, wanted) if guessed else ([], "")
        except CannotRead as error:
            return [], error.problem.message
        except WorkerUnavailable as error:
            return [], f"{error.message}. {error.remedy}"
        return views, reason or ("" if views else "nothing reaches this launch with argument types")

    def forget(self, path: str) -> None:
        """Search anew, at the next check, for what reaches the launches of a file."""
        self._elsewhere.forget(path)

    def renew(self, path: str) -> None:
        """Run all of a file's code at the next check, though nothing that is known to matter has changed."""
        self._runner.renew(os.path.abspath(path))  # noqa: PTH100 - as in check

    async def further(self, snapshot: Snapshot, path: str, report: Report) -> Report:
        """A later stage of a final report: what stands behind the first fault of each kernel; see ``further``.

        Each fault behind another takes a check of its own, so this is for when nobody is waiting.  The report as it is
        where there is nothing to see.
        """
        from pallas_lsp.engine.further import can_go_further, further

        return await further(self, snapshot, path, report) if can_go_further(report) else report

    async def worker_info(self, path: str, roots: tuple[str, ...] = ()) -> WorkerInfo:
        """What the interpreter for a file has; raises WorkerUnavailable."""
        return await self._pool.info(self.interpreter(path, roots))

    def interpreter(self, path: str, roots: tuple[str, ...] = ()) -> str:
        """The interpreter that runs a file; raises WorkerUnavailable."""
        return find_interpreter(path, roots, self.settings.python)

    def _environment_changed(self) -> None:
        self.on_environment_change()

    async def aclose(self) -> None:
        """End all workers and what they started."""
        self._closed = True
        self._environments.end()
        if self._confirmations is not None:
            await self._confirmations.aclose()
        await self._pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Check:
    """One check of one file."""

    def __init__(self, engine: Engine, snapshot: Snapshot, path: str, on_report: OnReport | None) -> None:
        self.engine = engine
        self.snapshot = snapshot
        self.path = path
        self.on_report = on_report
        self.started = time.monotonic()
        document = snapshot.documents.get(path)
        self.version = document.version if document is not None else None
        self.info: WorkerInfo | None = None

    async def run(self, *, execute: bool) -> Report:
        loop = asyncio.get_running_loop()
        if self.engine._closed:
            return self._report(Stage.READ, problems=(_ENDING.problem(),))
        try:
            reading = await loop.run_in_executor(
                self.engine._threads, read, self.snapshot, self.path, self.engine.settings.longest
            )
        except CannotRead as error:
            return self._report(Stage.READ, problems=(error.problem,))
        except Exception as error:  # nothing that a file holds may end the server
            return self._report(Stage.READ, problems=(self._own_fault(error),))
        if not (reading.drivers or (reading.launches and self.engine.settings.discovery)) or not execute:
            reason = NO_DRIVER if execute else "the file was only read, none of its code was run"
            unreached = tuple(
                LaunchStatus(each, (), reason, remedy_for(reading.text, each) if execute else "")
                for each in reading.launches
            )
            findings = await self._read(reading) if execute else ()
            return self._report(Stage.READ, findings=findings, launches=unreached)
        try:
            return await self._run(reading)
        except WorkerUnavailable as error:
            top = reading.lines.line_range(0)
            unreached = tuple(LaunchStatus(launch, (), error.message) for launch in reading.launches)
            return self._report(Stage.READ, launches=unreached, problems=(error.problem(Location(self.path, top)),))
        except Exception as error:
            return self._report(Stage.READ, problems=(self._own_fault(error),))

    async def _read(self, reading: Reading) -> tuple[Finding, ...]:
        """What the text alone shows under the user's jax; nothing where no worker can tell which that is."""
        if not reading.launches and "pallas" not in reading.text:
            return ()
        try:
            self.info = await self.engine.worker_info(self.path, self.snapshot.roots)
        except WorkerUnavailable:
            return ()
        return judge((), Context(self.snapshot, self.info), [self.path])

    async def _run(self, reading: Reading) -> Report:
        engine = self.engine
        python = engine.interpreter(self.path, self.snapshot.roots)
        self.info = await engine._pool.info(python)

        def on_traced(outcome: Outcome) -> None:
            if self.on_report is not None:
                self.on_report(self._judged(reading, outcome, Stage.TRACE, final=False))

        async def run(path: str, drivers: tuple[Driver, ...], stand_ins: tuple[str, ...] = ()) -> Outcome:
            more = {"enough": True, "stand_ins": list(stand_ins)}
            return await engine._runner.run(python, self.snapshot, path, drivers, reading.texts, lambda _: None, more)

        def on_batch(drivers: tuple[Driver, ...], outcome: Outcome) -> None:
            if self.on_report is not None:
                self.on_report(
                    self._judged(replace(reading, drivers=(*own, *drivers)), outcome, Stage.LOWER, final=False)
                )

        own = reading.drivers
        discovery = engine.settings.discovery
        if discovery and reading.launches:
            own += await engine._elsewhere.known(self.snapshot, self.path)
        reading = replace(reading, drivers=own)
        outcome = Outcome()
        if own:
            ahead = partial(read_ahead, self.path, Context(self.snapshot, self.info))
            outcome = await engine._runner.run(
                python, self.snapshot, self.path, own, reading.texts, on_traced, meanwhile=ahead
            )
        if outcome.died_in_import:
            return self._judged(reading, outcome, Stage.LOWER, final=True)
        if discovery and unreached(reading.launches, outcome):
            found, outcome = await engine._elsewhere.search(
                self.snapshot, self.path, reading, outcome, engine.settings.targets, run, on_batch
            )
            reading = replace(reading, drivers=(*own, *found))
        if engine.settings.guess and (left := unreached(reading.launches, outcome)):
            guesses = await engine._elsewhere.guesses(self.snapshot, self.path, left)
            if guesses:
                outcome = (await run(self.path, guesses)).after(outcome, "guess")
                reading = replace(reading, drivers=(*reading.drivers, *guesses))
            stubbed, outcome = await with_stand_ins(
                self.snapshot, self.path, reading.launches, reading.drivers, outcome, partial(run, self.path)
            )
            reading = replace(reading, drivers=(*reading.drivers, *stubbed))
        return self._judged(reading, outcome, Stage.LOWER, final=True)

    def _judged(self, reading: Reading, outcome: Outcome, stage: Stage, *, final: bool) -> Report:
        context = Context(self.snapshot, self.info, outcome.captures.values(), reading.drivers)
        findings = judge(outcome.faults.values(), context, [self.path])
        reached = statuses(self.path, reading.lines, reading.launches, reading.drivers, outcome)
        problems = [*self._deaths(reading, outcome), *self._missing_backends(reached)]
        if not reading.launches:
            problems += stopped_problems(self.path, reading.lines, reading.drivers, outcome)
        return self._report(stage, final=final, findings=tuple(findings), launches=reached, problems=tuple(problems))

    def _deaths(self, reading: Reading, outcome: Outcome) -> list[Problem]:
        found = []
        for failure in outcome.failures:
            driver = next((d for d in reading.drivers if d.id == failure.driver), None)
            range_ = driver_range(reading.text, driver) if driver is not None else None
            where = Location(self.path, range_) if range_ is not None else None
            found.append(problem_of(failure, self.path, where))
        return found

    def _missing_backends(self, reached: tuple[LaunchStatus, ...]) -> list[Problem]:
        assert self.info is not None
        found = []
        for backend, reason in self.info.missing.items():
            uses = [s.launch for s in reached if s.launch.backend == backend and s.launch.location.path == self.path]
            if uses:
                message = f"the Pallas backend {backend} cannot be imported in {self.info.executable}: {reason}"
                remedy = _BACKEND_REMEDIES.get(Backend(backend), "Repair or upgrade jax there.")
                found.append(Problem("backend-missing", message, remedy, uses[0].location))
        return found

    def _own_fault(self, error: Exception) -> Problem:
        self.engine._log(f"{self.path}: {type(error).__name__}: {error}")
        return Problem(
            "internal-error",
            f"the check failed through a fault of Pallas LSP: {type(error).__name__}: {error}",
            "Please report it, with the log and the file if you may share them.",
        )

    def _report(
        self,
        stage: Stage,
        *,
        final: bool = True,
        findings: tuple[Finding, ...] = (),
        launches: tuple[LaunchStatus, ...] = (),
        problems: tuple[Problem, ...] = (),
    ) -> Report:
        seconds = round(time.monotonic() - self.started, 4)
        return Report(self.path, self.version, stage, final, findings, launches, problems, seconds)
