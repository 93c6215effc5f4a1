"""Checks files with the engine: several at a time, fixes verified, safe ones applied where that is asked for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pallas_lsp.cli.diffs import edited, make_diff
from pallas_lsp.cli.files import project_folder
from pallas_lsp.cli.outcome import (
    Applied,
    Outcome,
    is_applicable,
    merge_findings,
    merge_launches,
    merge_problems,
    unreached,
)
from pallas_lsp.cli.sources import Sources, UnreadableError, UnwritableError
from pallas_lsp.confirm.confirmation import Confirmation
from pallas_lsp.model import (
    Document,
    Finding,
    Fix,
    Location,
    Position,
    Problem,
    Range,
    Report,
    Safety,
    Snapshot,
    Stage,
    WorkerInfo,
)

_START = Range(Position(0, 0), Position(0, 0))
_MOST_FIXES = 200
"""Fixes applied to one file at most."""


class Checker(Protocol):
    """What the command line needs of ``engine.Engine``."""

    async def check(self, snapshot: Snapshot, path: str) -> Report: ...
    async def further(self, snapshot: Snapshot, path: str, report: Report) -> Report: ...
    async def verify(self, snapshot: Snapshot, path: str, finding: Finding, fix: Fix) -> Fix: ...
    async def confirm(self, snapshot: Snapshot, path: str, report: Report) -> Confirmation: ...
    async def worker_info(self, path: str, roots: tuple[str, ...] = ()) -> WorkerInfo: ...


class Progress(Protocol):
    """Told of each step, to show it."""

    def checking(self, path: str) -> None: ...
    def verifying(self, path: str, fix: Fix) -> None: ...
    def done(self) -> None: ...


class NoProgress:
    def checking(self, path: str) -> None:
        pass

    def verifying(self, path: str, fix: Fix) -> None:
        pass

    def done(self) -> None:
        pass


@dataclass(frozen=True)
class Request:
    files: Sequence[str]
    verify: bool = True
    fix: bool = False
    """Apply safe fixes that were verified."""
    write: bool = True
    """Write what was fixed; else it is shown as a diff."""
    jobs: int = 1
    skipped: int = 0
    cwd: str = field(default_factory=os.getcwd)
    confirm: bool = False
    """Have a GPU confirm what was found."""


@dataclass
class _Collected:
    reports: list[Report] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    workers: list[WorkerInfo] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    unconfirmed: list[str] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)


class Run:
    """One run of ``check``.  ``sources`` holds the text that the findings belong to."""

    def __init__(self, checker: Checker, request: Request, sources: Sources, progress: Progress | None = None) -> None:
        self._checker = checker
        self._request = request
        self._sources = sources
        self._progress = progress or NoProgress()
        self._collected = _Collected()

    async def outcome(self) -> Outcome:
        began = time.monotonic()
        request, collected = self._request, self._collected
        diff: str | None = None
        if request.fix:
            await self._each(self._fix, 1)  # one after the other: a fix may lie in a file that is checked later
            if collected.applied:
                diff = self._finish_fixes()
        await self._each(self._check, request.jobs)
        launches = merge_launches(collected.reports)
        findings = merge_findings(finding for report in collected.reports for finding in report.findings)
        problems = [*collected.problems, *(problem for report in collected.reports for problem in report.problems)]
        return Outcome(
            files=tuple(request.files),
            sources=self._sources,
            findings=findings,
            launches=launches,
            problems=merge_problems([*problems, *unreached(launches, findings, problems)]),
            workers=tuple({worker.executable: worker for worker in collected.workers}.values()),
            applied=tuple(collected.applied),
            diff=diff,
            skipped=request.skipped,
            seconds=time.monotonic() - began,
            cwd=request.cwd,
            gpus=tuple(dict.fromkeys(collected.gpus)),
            unconfirmed=tuple(dict.fromkeys(collected.unconfirmed)),
        )

    async def _each(self, action: Callable[[str], Awaitable[None]], jobs: int) -> None:
        waiting = asyncio.Semaphore(max(jobs, 1))

        async def one(path: str) -> None:
            async with waiting:
                self._progress.checking(path)
                try:
                    await action(path)
                finally:
                    self._progress.done()

        async with asyncio.TaskGroup() as group:
            for path in self._request.files:
                group.create_task(one(path))

    # -- checking -----------------------------------------------------------------------------------------------------

    def _snapshot(self, path: str) -> Snapshot:
        """The file and whatever was fixed; a file that cannot be read is left to the engine, which says why."""
        texts = dict(self._sources.changed)
        with contextlib.suppress(UnreadableError):
            texts[path] = self._sources.read(path)
        documents = {each: Document(each, file.text) for each, file in texts.items()}
        return Snapshot(documents, (project_folder(path, self._request.cwd),))

    async def _report(self, path: str) -> tuple[Snapshot, Report] | None:
        """The last report on a file, or None with a problem noted where there is none."""
        snapshot = self._snapshot(path)
        try:
            return snapshot, await self._checker.check(snapshot, path)
        except Exception as error:  # one file's failure must not hide what was found in the others
            self._problem("internal", path, f"the check failed inside Pallas LSP: {_describe(error)}", _REPORT_IT)
        return None

    async def _check(self, path: str) -> None:
        checked = await self._report(path)
        if checked is None:
            return
        snapshot, report = checked
        report = await self._further(snapshot, path, report)
        findings = [await self._verified(snapshot, path, finding) for finding in report.findings]
        report = replace(report, findings=tuple(findings))
        self._collected.reports.append(await self._confirmed(snapshot, path, report))
        reached = any(status.captures for status in report.launches)
        if reached or any(finding.stage is not Stage.READ for finding in findings):
            await self._note_worker(path, snapshot.roots)

    async def _further(self, snapshot: Snapshot, path: str, report: Report) -> Report:
        """The report with the faults that stand behind others; like fixes, they are found by checking edited text."""
        if not self._request.verify:
            return report
        try:
            return await self._checker.further(snapshot, path, report)
        except Exception as error:  # what was found so far still holds
            self._problem("internal", path, f"faults behind others were not looked for: {_describe(error)}", _REPORT_IT)
        return report

    async def _confirmed(self, snapshot: Snapshot, path: str, report: Report) -> Report:
        """The report with what GPUs say of it."""
        if not self._request.confirm:
            return report
        try:
            confirmation = await self._checker.confirm(snapshot, path, report)
        except Exception as error:  # a verdict that is missing must not hide what was found
            self._collected.unconfirmed.append(f"a confirmation failed inside Pallas LSP: {_describe(error)}")
            return report
        self._collected.gpus += confirmation.gpus
        if confirmation.state:
            self._collected.unconfirmed.append(confirmation.state)
        return confirmation.report

    async def _note_worker(self, path: str, roots: tuple[str, ...]) -> None:
        try:
            self._collected.workers.append(await self._checker.worker_info(path, roots))
        except Exception:  # it was there for the check and is gone: only the version in the output is missing
            return

    async def _verified(self, snapshot: Snapshot, path: str, finding: Finding) -> Finding:
        if not self._request.verify:
            return finding
        fixes = [await self._verify(snapshot, path, finding, fix) for fix in finding.fixes]
        return replace(finding, fixes=tuple(fixes))

    async def _verify(self, snapshot: Snapshot, path: str, finding: Finding, fix: Fix) -> Fix:
        if fix.verified is not None or not fix.edits:
            return fix
        self._progress.verifying(path, fix)
        try:
            return await self._checker.verify(snapshot, path, finding, fix)
        except Exception as error:
            return replace(fix, verified=False, reason=f"it could not be tried: {_describe(error)}")

    def _problem(self, kind: str, path: str, message: str, remedy: str) -> None:
        self._collected.problems.append(Problem(kind, message, remedy, Location(path, _START)))

    # -- fixing -------------------------------------------------------------------------------------------------------

    async def _fix(self, path: str) -> None:
        """Apply one verified fix after the other until none is left.

        What is applied is the very edit to the very text that was verified, so that no combination goes untried.
        """
        seen = {self._state()}
        for _ in range(_MOST_FIXES):
            applied = await self._next_fix(path)
            if applied is None:
                return
            before = {edit.path: self._sources.read(edit.path).text for edit in applied.fix.edits}
            for changed in before:
                edits = [edit for edit in applied.fix.edits if edit.path == changed]
                self._sources.change(changed, edited(before[changed], edits))
            if self._state() in seen:
                for changed, text in before.items():
                    self._sources.change(changed, text)
                return
            seen.add(self._state())
            self._collected.applied.append(applied)

    def _state(self) -> frozenset[tuple[str, str]]:
        return frozenset((path, file.text) for path, file in self._sources.changed.items())

    async def _next_fix(self, path: str) -> Applied | None:
        problems = len(self._collected.problems)
        checked = await self._report(path)
        del self._collected.problems[problems:]  # the check that follows names them
        if checked is None:
            return None
        snapshot, report = checked
        for finding in report.findings:
            for fix in finding.fixes:
                if fix.safety is not Safety.SAFE:
                    continue
                tried = await self._verify(snapshot, path, finding, fix)
                if is_applicable(tried):
                    return Applied(finding, tried)
        return None

    def _finish_fixes(self) -> str | None:
        """Write the changed files, or make the diff and go back to the text on disk."""
        if not self._request.write:
            return make_diff(self._sources, self._request.cwd)
        try:
            self._sources.write()
        except UnwritableError as error:
            path = next(iter(self._sources.changed))
            self._problem("not-written", path, f"fixes were not applied: {error.message}", error.remedy)
            self._collected.applied.clear()
            self._sources.forget()
        return None


_REPORT_IT = "Please report this with the file and the log ('pallas-lsp doctor' names the log's folder)."


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
