"""Whether a fix holds: the edited text is parsed, traced and lowered, and compared with what was there before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pallas_lsp.engine.masking import Masking, kernel_name
from pallas_lsp.model import (
    Capture,
    Document,
    Edit,
    Finding,
    Fix,
    LaunchStatus,
    Location,
    Report,
    Snapshot,
    Stage,
)
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.source.edits import OverlapError, apply_edits, moved
from pallas_lsp.source.syntax import parse

_QUOTED = 160


class Checker(Protocol):
    """What verification needs of the engine."""

    async def check(self, snapshot: Snapshot, path: str) -> Report: ...


@dataclass(frozen=True)
class Attempt:
    """A fix that was tried: the edited snapshot with its report, and the faults that showed behind the one it mends."""

    fix: Fix
    snapshot: Snapshot | None = None
    report: Report | None = None
    uncovered: tuple[Finding, ...] = ()


async def verify(
    engine: Checker, snapshot: Snapshot, path: str, finding: Finding, fix: Fix, before: Report | None = None
) -> Fix:
    """The fix, with ``verified`` set and, where it does not hold, the reason.

    It holds when the edited text parses, ``finding`` is gone, no other finding came but those that it hid (see
    ``masking``), every kernel that was reached is still reached, the kernel at fault is lowered to the end or to the
    fault that was hidden, and nothing offers the same fix again.  ``before`` is the report that ``finding`` is from;
    without it the unedited text is checked first.
    """
    return (await attempt(engine, snapshot, path, finding, fix, before)).fix


async def attempt(
    engine: Checker, snapshot: Snapshot, path: str, finding: Finding, fix: Fix, before: Report | None = None
) -> Attempt:
    """Try a fix; see ``verify``."""
    try:
        edited = edited_snapshot(snapshot, fix.edits)
    except (OverlapError, OSError) as error:
        return Attempt(_failed(fix, f"the edits cannot be applied: {error}"))
    for document in _changed(edited, fix.edits):
        try:
            parse(document.text)
        except (SyntaxError, ValueError) as error:
            return Attempt(_failed(fix, f"the edited text does not parse: {error}"))
    if all(edited.documents[edit.path].text == _text(snapshot, edit.path) for edit in fix.edits):
        return Attempt(_failed(fix, "it changes nothing"))
    if before is None:
        before = await engine.check(snapshot, path)
    after = await engine.check(edited, path)
    new, reason = _new_findings(snapshot, before, after, finding, fix)
    mask = Masking(snapshot, edited, before, after, finding, fix.edits)
    hidden = tuple(each for each in new if mask.hid(each))
    caused = [each for each in new if each not in hidden]
    if not reason and caused:
        where = f"line {caused[0].location.range.start.line + 1}"
        reason = f"then {where} is refused: {short(caused[0].message.partition(chr(10))[0], _QUOTED)}"
    reason = reason or _objection(before, after, finding, hidden)
    if reason:
        return Attempt(_failed(fix, reason), edited, after, hidden)
    return Attempt(replace(fix, verified=True, reason=_further(hidden)), edited, after, hidden)


def _further(hidden: Sequence[Finding]) -> str:
    """What a fix that holds brings to light."""
    if not hidden:
        return ""
    first = hidden[0]
    line = first.location.range.start.line + 1
    return f"line {line} has a further fault, which shows then: {short(first.message.partition(chr(10))[0], _QUOTED)}"


def edited_snapshot(snapshot: Snapshot, edits: Sequence[Edit]) -> Snapshot:
    """The snapshot with edits applied; edited files that were not open are open in it."""
    documents: dict[str, Document] = dict(snapshot.documents)
    for path in {edit.path for edit in edits}:
        text = apply_edits(_text(snapshot, path), [edit for edit in edits if edit.path == path])
        known = snapshot.documents.get(path)
        documents[path] = replace(known, text=text) if known is not None else Document(path, text)
    return replace(snapshot, documents=documents)


def _text(snapshot: Snapshot, path: str) -> str:
    text = Context(snapshot).text(path)
    if text is None:
        raise OSError(f"{path} cannot be read")
    return text


def _changed(snapshot: Snapshot, edits: Sequence[Edit]) -> list[Document]:
    return [snapshot.documents[path] for path in sorted({edit.path for edit in edits})]


def _failed(fix: Fix, reason: str) -> Fix:
    return replace(fix, verified=False, reason=reason)


def _new_findings(
    snapshot: Snapshot, before: Report, after: Report, finding: Finding, fix: Fix
) -> tuple[list[Finding], str]:
    """The findings after a fix that were not there before, or why it is plain that it does not hold."""
    expected = [_expected(snapshot, other, fix.edits) for other in before.findings if not _same(other, finding)]
    own = _expected(snapshot, finding, fix.edits)
    new = []
    for other in after.findings:
        key = _key(other)
        if key in expected:
            expected.remove(key)
            continue
        offered = any(each.title == fix.title for each in other.fixes) and other.rule == finding.rule
        if offered and (key == own or not _elsewhere(snapshot, other, finding, fix)):
            return [], "the finding is still there"
        new.append(other)
    return new, ""


def _elsewhere(snapshot: Snapshot, other: Finding, finding: Finding, fix: Fix) -> bool:
    """Whether a finding like the one that a fix mends stands at another place: the same fault once more."""
    moved_to = _expected(snapshot, finding, fix.edits)
    return (other.location.path, other.location.range.start.line) != (moved_to[1], moved_to[2])


def _objection(before: Report, after: Report, finding: Finding, hidden: Sequence[Finding]) -> str:
    """Why a fix does not hold although no finding says so; empty where it does."""
    known = {(problem.kind, problem.message) for problem in before.problems}
    for problem in after.problems:
        if (problem.kind, problem.message) not in known:
            return short(problem.message, _QUOTED)
    return _unreached(before.launches, after.launches, finding, hidden)


def _same(a: Finding, b: Finding) -> bool:
    return (a.rule, a.location, a.message) == (b.rule, b.location, b.message)


Key = tuple[str, str, int, str]
"""What makes a finding the same before and after: rule, file, line and kernel."""


def _key(finding: Finding) -> Key:
    return (finding.rule, finding.location.path, finding.location.range.start.line, finding.kernel)


def _expected(snapshot: Snapshot, finding: Finding, edits: Sequence[Edit]) -> Key:
    """How a finding that the fix does not concern looks like afterwards."""
    path = finding.location.path
    own = [edit for edit in edits if edit.path == path]
    if not own:
        return _key(finding)
    range_ = moved(_text(snapshot, path), own, finding.location.range)
    return _key(replace(finding, location=Location(path, range_)))


def _unreached(
    before: Sequence[LaunchStatus], after: Sequence[LaunchStatus], finding: Finding, hidden: Sequence[Finding]
) -> str:
    """Whether something is not checked any more that was checked before, or the kernel at fault still is not."""
    reached_before, reached_after = _captures(before), _captures(after)
    for key, captures in reached_before.items():
        now = reached_after.get(key, [])
        if len(now) < len(captures):
            missing = next((s.reason for s in after if not s.captures and s.reason), "")
            return f"then the kernel {key} is not reached any more" + (f": {missing}" if missing else "")
    kernels = set(finding.kernel.split(", ")) - {""}
    concerned = [c for key, captures in reached_after.items() for c in captures if not kernels or key in kernels]
    if not concerned and finding.stage is Stage.READ and not reached_before:
        return ""  # it was found by reading alone, and by reading alone it is gone
    if not concerned and not hidden:
        return "then no kernel is reached that could be checked"
    stopped = {name for each in hidden for name in each.kernel.split(", ")}
    halted = [c for c in concerned if c.stage is not Stage.LOWER and kernel_name(c) not in stopped]
    if halted and kernels:
        return f"then the kernel {halted[0].body.name if halted[0].body else ''} is not lowered to the end"
    return ""


def _captures(launches: Sequence[LaunchStatus]) -> Mapping[str, list[Capture]]:
    found: dict[str, list[Capture]] = {}
    for status in launches:
        for capture in status.captures:
            found.setdefault(kernel_name(capture), []).append(capture)
    return found
