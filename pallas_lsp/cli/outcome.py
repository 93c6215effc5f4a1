"""What a run of ``check`` found out, over all its files: the input of every output format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pallas_lsp.cli.sources import Sources
from pallas_lsp.model import (
    Capture,
    Finding,
    Fix,
    LaunchStatus,
    Location,
    Problem,
    Report,
    Safety,
    Severity,
    WorkerInfo,
)
from pallas_lsp.origins import shown_path

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UNCHECKED = 3
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130

CIRCUMSTANCES = "Found while "
"""How the last line of a finding's message begins: for which kernel and argument types it was found."""

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFORMATION: 2, Severity.HINT: 3}


@dataclass(frozen=True, slots=True)
class Applied:
    """A fix that ``--fix`` applied."""

    finding: Finding
    fix: Fix


@dataclass(frozen=True)
class Outcome:
    """Findings and launches are merged over the files: a helper's fault that two files reach is one finding."""

    files: tuple[str, ...]
    sources: Sources
    findings: tuple[Finding, ...] = ()
    launches: tuple[LaunchStatus, ...] = ()
    problems: tuple[Problem, ...] = ()
    workers: tuple[WorkerInfo, ...] = ()
    applied: tuple[Applied, ...] = ()
    diff: str | None = None
    """What ``--diff`` shows: the applied fixes, which were not written."""
    skipped: int = 0
    seconds: float = 0.0
    log: str | None = None
    cwd: str = field(default_factory=os.getcwd)
    gpus: tuple[str, ...] = ()
    """The kinds of GPU that confirmed something."""
    unconfirmed: tuple[str, ...] = ()
    """Why GPUs said nothing of some files."""

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that make the exit code 1."""
        pending = [applied.finding for applied in self.applied] if self.diff is not None else []
        return tuple(finding for finding in (*pending, *self.findings) if is_failure(finding))

    @property
    def exit_code(self) -> int:
        if self.failures:
            return EXIT_FINDINGS
        return EXIT_UNCHECKED if self.problems else EXIT_OK

    @property
    def jax(self) -> str | None:
        """The jax version, where all files were checked with the same."""
        versions = {worker.jax for worker in self.workers}
        return versions.pop() if len(versions) == 1 else None

    def shown_path(self, path: str) -> str:
        """Relative to the working directory where it lies in there, with forward slashes."""
        return shown_path(path, self.cwd)


def is_failure(finding: Finding) -> bool:
    return finding.severity in (Severity.ERROR, Severity.WARNING)


def is_applicable(fix: Fix) -> bool:
    """Whether ``--fix`` applies it."""
    return fix.verified is True and fix.safety is Safety.SAFE and bool(fix.edits)


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for each fault, sorted by place; what they hold for is joined."""
    merged: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.location, finding.severity, _what(finding.message))
        known = merged.get(key)
        merged[key] = finding if known is None else _join(known, finding)
    return tuple(
        sorted(merged.values(), key=lambda each: (each.location, _ORDER[each.severity], each.rule, each.message))
    )


def _what(message: str) -> str:
    """The message without where it was found, and without the sizes that differ from call to call."""
    lines = [line for line in message.splitlines() if not line.startswith(CIRCUMSTANCES)]
    return re.sub(r"\d+", "#", "\n".join(lines))


def _join(one: Finding, other: Finding) -> Finding:
    fixes = {(fix.title, fix.edits): fix for fix in one.fixes}
    for fix in other.fixes:
        key = (fix.title, fix.edits)
        fixes[key] = _weaker(fixes[key], fix) if key in fixes else fix
    arguments = dict.fromkeys(one.arguments + other.arguments)
    related = dict.fromkeys(one.related + other.related)
    return replace(one, fixes=tuple(fixes.values()), arguments=tuple(arguments), related=tuple(related))


def _weaker(one: Fix, other: Fix) -> Fix:
    """A fix holds only where it holds for everything that reaches the fault."""
    order = {False: 0, None: 1, True: 2}
    return min(one, other, key=lambda fix: order[fix.verified])


def merge_launches(reports: Iterable[Report]) -> tuple[LaunchStatus, ...]:
    """The launches of all files, each once, with the captures of every file that reached it."""
    statuses: dict[tuple[Location, str], LaunchStatus] = {}
    captures: list[Capture] = []
    for status in (status for report in reports for status in report.launches):
        key = (status.launch.location, status.launch.api)
        known = statuses.get(key, status)
        joined = _distinct((*known.captures, *status.captures))
        statuses[key] = replace(
            known, captures=joined, reason=known.reason or status.reason, remedy=known.remedy or status.remedy
        )
        captures += status.captures
    return tuple(_with_captures(statuses[key], captures) for key in sorted(statuses))


def _with_captures(status: LaunchStatus, captures: Sequence[Capture]) -> LaunchStatus:
    """A launch that its own file does not reach may be reached from another file that was checked."""
    if status.captures:
        return replace(status, reason="", remedy="")
    location = status.launch.location
    lines = range(location.range.start.line + 1, location.range.end.line + 2)
    found = [
        capture
        for capture in captures
        if capture.launch is not None
        and capture.launch.line in lines
        and os.path.realpath(capture.launch.path) == os.path.realpath(location.path)
    ]
    return replace(status, captures=_distinct(found), reason="", remedy="") if found else status


def _distinct(captures: Iterable[Capture]) -> tuple[Capture, ...]:
    distinct: list[Capture] = []
    for capture in captures:  # a capture's resources cannot be hashed
        if capture not in distinct:
            distinct.append(capture)
    return tuple(distinct)


def unreached(
    launches: Iterable[LaunchStatus], findings: Iterable[Finding], problems: Iterable[Problem]
) -> list[Problem]:
    """The launches that nothing reached, as problems; not those for which a finding or a problem says why already."""
    places = [place for each in findings for place in (each.location, *(related.location for related in each.related))]
    known = {problem.message for problem in problems}
    return [
        Problem(
            "not-reached",
            f"`{status.launch.api}` was not reached: {status.reason}.",
            status.remedy,
            status.launch.location,
        )
        for status in launches
        if status.reason
        and not status.captures
        and status.reason not in known
        and not any(_touch(status.launch.location, place) for place in places)
    ]


def _touch(one: Location, other: Location) -> bool:
    """Whether two places share a line."""
    return (
        one.path == other.path
        and one.range.start.line <= other.range.end.line
        and other.range.start.line <= one.range.end.line
    )


def merge_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    def place(problem: Problem) -> tuple[bool, str, int, int]:
        if problem.location is None:
            return (True, "", 0, 0)
        start = problem.location.range.start
        return (False, problem.location.path, start.line, start.character)

    return tuple(sorted(dict.fromkeys(problems), key=place))


def count_by_severity(findings: Iterable[Finding]) -> Mapping[Severity, int]:
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts
