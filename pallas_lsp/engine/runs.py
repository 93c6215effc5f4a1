"""The runs of one check: one, and after a death another without what caused it, so that the rest is still checked."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from types import MappingProxyType
from typing import Any

from pallas_lsp.engine.codec import encode
from pallas_lsp.engine.errors import RunFailed
from pallas_lsp.engine.incremental import Plan, keep, plan
from pallas_lsp.engine.kept import Kept
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.outcome import Failure, Outcome
from pallas_lsp.engine.pool import Pool
from pallas_lsp.engine.settings import Settings
from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.launches import find_launches
from pallas_lsp.source.workspace import read_text

_MOST_RUNS = 6
_DEADLY = {"timed-out", "out-of-memory", "crashed", "exited"}
_REMEMBERED = 64
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_LOWERING = ("lower", "confirm", "launch")
"""The stages that concern one capture alone."""


def launch_lines(snapshot: Snapshot, path: str) -> list[int]:
    """Where the launches of a file begin: when all were reached, nothing has to be run concretely."""
    try:
        return [each.location.range.start.line + 1 for each in find_launches(path, read_text(snapshot, path))]
    except (OSError, ValueError, SyntaxError):
        return []


OnTraced = Callable[[Outcome], None]


class Runner:
    """``threads``: where texts are read and compared."""

    def __init__(self, settings: Settings, pool: Pool, threads: Executor, log: Log) -> None:
        self._settings = settings
        self._pool = pool
        self._threads = threads
        self._kept = Kept(settings.kept, threads)
        self._log = log
        self._deadly: OrderedDict[bytes, Outcome] = OrderedDict()
        self._renewed: set[str] = set()
        self._cut_short: set[str] = set()
        """The files whose main block stopped when it was run last."""

    def renew(self, path: str) -> None:
        """Run all of a file's code at its next check, whatever is known of it."""
        self._renewed.add(path)

    async def run(
        self,
        python: str,
        snapshot: Snapshot,
        path: str,
        drivers: tuple[Driver, ...],
        texts: Mapping[str, str],
        on_traced: OnTraced,
        more: Mapping[str, Any] = _NOTHING,
        meanwhile: Callable[[], object] | None = None,
    ) -> Outcome:
        """Execute the drivers.  ``texts``: the file and the workspace files that it imports.  ``more``: parameters of
        the run.  ``meanwhile``: what is to be done in a thread while the code runs.

        What is known from an earlier run of the same code is not run again, wherever it stands now; nor is what killed
        a worker.
        """
        key = self._key(python, drivers, texts, more)
        renewed = path in self._renewed
        self._renewed.discard(path)
        if key in self._deadly and not renewed:
            self._deadly.move_to_end(key)
            return self._deadly[key]
        plan = await self._plan(python, snapshot, path, drivers, texts, more)
        if renewed:
            plan = plan.anew(drivers)
        elif path in self._cut_short:
            plan = plan.entire(drivers)

        if meanwhile is not None:
            with contextlib.suppress(RuntimeError):  # the engine is ending
                self._threads.submit(meanwhile)

        async def execute(plan: Plan) -> Outcome:
            def traced(outcome: Outcome) -> None:
                on_traced(outcome.in_order(drivers))

            return (await self._run_all(python, snapshot, path, plan, traced, more)).in_order(drivers)

        outcome = await execute(plan)
        if plan.divided and not plan.cut_short(outcome):
            self._cut_short.discard(path)
        elif plan.divided and path not in self._cut_short:
            self._cut_short.add(path)
            plan = plan.entire(drivers)
            outcome = await execute(plan)
        keep(self._kept, plan, outcome, self._log)
        if any(failure.error.kind in _DEADLY for failure in outcome.failures):
            self._deadly[key] = outcome
            while len(self._deadly) > _REMEMBERED:
                self._deadly.popitem(last=False)
        return outcome

    async def _plan(
        self,
        python: str,
        snapshot: Snapshot,
        path: str,
        drivers: tuple[Driver, ...],
        texts: Mapping[str, str],
        more: Mapping[str, Any],
    ) -> Plan:
        if more and any(driver.kind != "guess" for driver in drivers):
            return Plan((), drivers)  # a search: what it finds is remembered in another way
        surroundings = (
            python,
            *await self._pool.surroundings(python),
            sorted(more.items()),
            sorted(self._settings.targets.items()),
            sorted(self._settings.environment.items()),
            self._settings.limits,
            self._settings.figures,
        )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, plan, self._kept, snapshot, path, drivers, texts, surroundings)

    async def _run_all(
        self,
        python: str,
        snapshot: Snapshot,
        path: str,
        plan: Plan,
        on_traced: OnTraced,
        more: Mapping[str, Any],
    ) -> Outcome:
        remaining = list(plan.drivers)
        skipped: list[str] = []
        failures: list[Failure] = []
        kept: list[tuple[Outcome, set[str]]] = plan.known
        more = {**more, "reached": sorted(plan.reached(path))}
        while True:
            outcome = Outcome()
            for attempt, (earlier, ended) in enumerate(kept, 1):
                outcome.keep(earlier, ended, attempt)
            outcome.failures = failures
            if not remaining:
                outcome.stage = "lower"
                return outcome
            failure = await self._run_once(python, snapshot, path, remaining, skipped, outcome, on_traced, more)
            if failure is None:
                return outcome
            failures.append(failure)
            again = len(failures) < _MOST_RUNS and failure.error.kind in _DEADLY
            if failure.capture is not None and failure.capture.id not in skipped:
                # All drivers were run: run them again, without lowering this one.
                skipped.append(failure.capture.id)
            elif failure.capture is None and failure.driver in {d.id for d in remaining} - {"module"}:
                kept.append((outcome, {failure.driver} if failure.driver else set()))
                remaining = [driver for driver in remaining if driver.id != failure.driver]
                again = again and bool(remaining)
            else:
                again = False
            if not again:
                return outcome

    async def _run_once(
        self,
        python: str,
        snapshot: Snapshot,
        path: str,
        drivers: list[Driver],
        skipped: list[str],
        outcome: Outcome,
        on_traced: OnTraced,
        more: Mapping[str, Any],
    ) -> Failure | None:
        told = False

        def on_event(method: str, fields: dict[str, Any]) -> None:
            nonlocal told
            try:
                outcome.receive(method, fields)
            except (ValueError, KeyError) as error:
                self._log(f"a message of the worker was left out: {error}")
            if method == "driver" and not told and outcome.driven(drivers):
                told = True
                try:
                    on_traced(outcome)
                except Exception as error:  # the final report will say so, if it is still true then
                    self._log(f"{path}: the report after tracing failed: {type(error).__name__}: {error}")

        params = {**self._params(snapshot, path, drivers, skipped), **more}
        try:
            for last in (False, True):
                async with self._pool.worker(python) as worker:
                    try:
                        await worker.run(params, on_event, self._settings.limits)
                        break
                    except RunFailed as error:
                        # A zygote that dies takes runs with it that did no harm; the pool says so and has another.
                        if last or not (worker.forks and error.worker):
                            raise
        except RunFailed as error:
            if error.detail:
                self._log(f"{path}: {error.message}\n{error.detail}")
            capture = outcome.captures.get(outcome.capture or "") if outcome.stage.startswith(_LOWERING) else None
            return Failure(error, outcome.driver if outcome.stage != "import" else None, capture)
        return None

    def _params(self, snapshot: Snapshot, path: str, drivers: Iterable[Driver], skipped: list[str]) -> dict[str, Any]:
        limits = self._settings.limits
        return {
            "path": path,
            "documents": {each.path: each.text for each in snapshot.documents.values()},
            "roots": list(snapshot.roots),
            "drivers": [encode(driver) for driver in drivers],
            "targets": {backend: list(kinds) for backend, kinds in self._settings.targets.items()},
            "limits": {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds},
            "stages": ["trace", "lower"],
            "skip": skipped,
            "launches": launch_lines(snapshot, path),
            "focus": path if any(driver.kind == "pytest" for driver in drivers) else None,
            "figures": self._settings.figures,
        }

    @staticmethod
    def _key(python: str, drivers: tuple[Driver, ...], texts: Mapping[str, str], more: Mapping[str, Any]) -> bytes:
        digest = hashlib.sha256(repr((python, drivers, sorted(more.items()))).encode())
        for path in sorted(texts):
            digest.update(repr((path, texts[path])).encode("utf-8", "backslashreplace"))
        return digest.digest()
