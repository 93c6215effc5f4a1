"""The faults behind the first one of a kernel: the text is checked with that one mended, and so on.

A kernel is followed up to its first fault.  With a fix applied it is followed further; what shows then is mapped back
to the text as it is.  Only faults that the fix did not cause count (see ``masking``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pallas_lsp.engine.judge import sort
from pallas_lsp.engine.masking import stops
from pallas_lsp.engine.verify import Attempt, Checker, attempt
from pallas_lsp.model import Edit, Finding, Fix, Location, Related, Report, Snapshot
from pallas_lsp.rules.context import Context
from pallas_lsp.source.edits import OverlapError, original_range

ROUNDS = 4
"""How many faults behind one another are followed."""
_MOST_CHECKS = 12
_MOST_FIXES = 3
"""Fixes that are tried for one fault before it counts as the last that can be seen."""


@dataclass(frozen=True)
class _Level:
    """A text that some fixes were applied to, one after the other, and a fault in it that stops its kernel."""

    snapshot: Snapshot
    report: Report
    finding: Finding
    applied: tuple[tuple[Snapshot, tuple[Edit, ...]], ...]
    first: Finding
    slot: int | None = None
    """Which of the findings to report it is; None for one of the report's own."""


async def further(engine: Checker, snapshot: Snapshot, path: str, report: Report) -> Report:
    """The report with the faults behind those that stop a kernel, and with what is known of the fixes tried for it."""
    return await _Search(engine, snapshot, path, report).run()


def can_go_further(report: Report) -> bool:
    """Whether a report has a fault that stops a kernel and that can be mended to see further."""
    return any(finding.fixes and stops(finding, report) for finding in report.findings)


class _Search:
    def __init__(self, engine: Checker, snapshot: Snapshot, path: str, report: Report) -> None:
        self.engine = engine
        self.path = path
        self.report = report
        self.known = {_place(finding) for finding in report.findings}
        self.tried: dict[int, list[Fix]] = {}
        self.found: list[Finding] = []
        self.checks = 0
        starting = [f for f in report.findings if stops(f, report)]
        self.waiting = deque(_Level(snapshot, report, finding, (), finding) for finding in starting)

    async def run(self) -> Report:
        while self.waiting and self.checks < _MOST_CHECKS:
            level = self.waiting.popleft()
            best, tried = await self._try(level)
            if level.slot is None:
                self.tried[id(level.finding)] = tried
            else:
                fixes = (_fix_back(fix, level.applied) for fix in tried if fix.verified is not None)
                own = self.found[level.slot]
                self.found[level.slot] = replace(own, fixes=tuple(fix for fix in fixes if fix is not None))
            if best is not None:
                self._take(level, best)
        findings = [self._with_tried(finding) for finding in self.report.findings]
        return replace(self.report, findings=sort([*findings, *self.found]))

    def _with_tried(self, finding: Finding) -> Finding:
        tried = self.tried.get(id(finding))
        return replace(finding, fixes=tuple(tried)) if tried else finding

    async def _try(self, level: _Level) -> tuple[Attempt | None, list[Fix]]:
        """The first fix that holds, else the first after which the fault is gone; and all fixes with what is known."""
        best: Attempt | None = None
        tried = list(level.finding.fixes)
        for index, fix in enumerate(level.finding.fixes[:_MOST_FIXES]):
            if self.checks >= _MOST_CHECKS:
                break
            if fix.verified is False:
                continue
            self.checks += 1
            result = await attempt(self.engine, level.snapshot, self.path, level.finding, fix, level.report)
            tried[index] = result.fix
            if result.fix.verified:
                return result, tried
            if best is None and result.uncovered:
                best = result
        return best, tried

    def _take(self, level: _Level, result: Attempt) -> None:
        """Report what shows behind a fault, and go on behind that."""
        assert result.snapshot is not None and result.report is not None
        applied = (*level.applied, (level.snapshot, result.fix.edits))
        for finding in result.uncovered:
            back = _mapped_back(finding, applied)
            if back is None or _place(back) in self.known:
                continue
            self.known.add(_place(back))
            head, newline, rest = back.message.partition("\n")
            message = f"{head} {_BEHIND}{newline}{rest}"
            data = {**back.data, "behind": level.first.rule}
            self.found.append(replace(back, message=message, data=data))
            if len(applied) <= ROUNDS:
                slot = len(self.found) - 1
                self.waiting.append(_Level(result.snapshot, result.report, finding, applied, level.first, slot))


_BEHIND = "It shows once the fault before it is mended."


def _place(finding: Finding) -> tuple[str, Location]:
    return finding.rule, finding.location


def _mapped_back(finding: Finding, applied: Sequence[tuple[Snapshot, tuple[Edit, ...]]]) -> Finding | None:
    """A finding with its places in the text before all fixes, without its fixes; None where an edit wrote its place."""
    location = _back(finding.location, applied)
    if location is None:
        return None
    related = []
    for each in finding.related:
        place = _back(each.location, applied)
        if place is not None:
            related.append(Related(place, each.message))
    return replace(finding, location=location, related=tuple(related), fixes=())


def _fix_back(fix: Fix, applied: Sequence[tuple[Snapshot, tuple[Edit, ...]]]) -> Fix | None:
    """A fix that was tried in a text with other fixes, as it is made in the text without them."""
    edits = [_edit_back(edit, applied) for edit in fix.edits]
    whole = tuple(edit for edit in edits if edit is not None)
    return replace(fix, edits=whole) if len(whole) == len(edits) else None


def _edit_back(edit: Edit, applied: Sequence[tuple[Snapshot, tuple[Edit, ...]]]) -> Edit | None:
    place = _back(Location(edit.path, edit.range), applied)
    return replace(edit, range=place.range) if place is not None else None


def _back(location: Location, applied: Sequence[tuple[Snapshot, tuple[Edit, ...]]]) -> Location | None:
    range_ = location.range
    for snapshot, edits in reversed(applied):
        own = [edit for edit in edits if edit.path == location.path]
        text = Context(snapshot).text(location.path) if own else None
        if not own or text is None:
            continue
        try:
            back = original_range(text, own, range_)
        except (OverlapError, ValueError):
            return None
        if back is None:
            return None
        range_ = back
    return Location(location.path, range_)
