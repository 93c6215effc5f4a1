"""Whether a finding that shows after a fix was hidden by the fault that the fix mends, or is caused by the fix.

A kernel is followed up to its first fault.  What lies behind it shows once that is mended; it is no fault of the fix
where the fix did not touch it and nothing there comes from what the fix changed.  Findings about the order of
operations (``Rule.of_order``) do not depend on the values: they are hidden ones wherever the fix did not touch them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pallas_lsp.model import Capture, Edit, Finding, Range, Report, Severity, Snapshot, Stage
from pallas_lsp.rules.base import rule_named
from pallas_lsp.rules.context import Context
from pallas_lsp.source.edits import new_ranges
from pallas_lsp.source.influence import Influence
from pallas_lsp.source.positions import Lines
from pallas_lsp.source.syntax import Syntax

_ORDER = list(Stage)


class Masking:
    """One fix: the texts and reports before and after it."""

    def __init__(
        self,
        before_text: Snapshot,
        after_text: Snapshot,
        before: Report,
        after: Report,
        finding: Finding,
        edits: Sequence[Edit],
    ) -> None:
        self._before_text = Context(before_text)
        self._after_text = Context(after_text)
        self._before = before
        self._after = after
        self._finding = finding
        self._edits = tuple(edits)

    def hid(self, other: Finding) -> bool:
        """Whether the mended fault hid ``other``, which is new."""
        return self._was_stopped(other) and self._is_independent(other)

    def _was_stopped(self, other: Finding) -> bool:
        """Whether the kernel of a new finding could not be followed further before."""
        own, kernels = names(self._finding.kernel), names(other.kernel)
        if stops(self._finding, self._before) is False:
            return False
        if not own:
            # The fault stood outside of any kernel: what it kept from being reached was not followed at all.
            reached = {kernel_name(c) for s in self._before.launches for c in s.captures}
            return bool(kernels) and not kernels & reached
        if not own & kernels:
            return False
        return _ORDER.index(other.stage) >= _ORDER.index(self._finding.stage)

    def _is_independent(self, other: Finding) -> bool:
        places = [other.location, *(each.location for each in other.related)]
        paths = {edit.path for edit in self._edits}
        if paths != {other.location.path}:
            return False
        influence = self._influence
        if influence is None:
            return False
        ranges = [place.range for place in places if place.path == other.location.path]
        rule = rule_named(other.rule)
        if rule is not None and rule.of_order:
            return not any(influence.touches(range_) for range_ in ranges)
        return not any(influence.reaches(range_) for range_ in ranges)

    @cached_property
    def _influence(self) -> Influence | None:
        path = self._edits[0].path
        before = self._before_text.text(path)
        syntax: Syntax | None = self._after_text.syntax(path)
        if before is None or syntax is None:
            return None
        changed: list[Range] = new_ranges(before, [edit for edit in self._edits if edit.path == path])
        return Influence(syntax, [_without_commas(syntax.lines, range_) for range_ in changed])


def _without_commas(lines: Lines, range_: Range) -> Range:
    """New text without the commas and blanks that part it from its neighbours, which stay what they are."""
    start, end = lines.offset(range_.start), lines.offset(range_.end)
    text = lines.text[start:end]
    own = text.strip(", \t\r\n")
    if not own:
        return range_
    first = start + text.index(own)
    return lines.range(first, first + len(own))


def stops(finding: Finding, report: Report) -> bool:
    """Whether a finding kept its kernel from being followed to the end."""
    if finding.severity is not Severity.ERROR or finding.stage not in (Stage.BUILD, Stage.TRACE, Stage.LOWER):
        return False
    own = names(finding.kernel)
    if not own:
        return True
    captures = [c for status in report.launches for c in status.captures if kernel_name(c) in own]
    return not captures or any(capture.stage is not Stage.LOWER for capture in captures)


def names(kernel: str) -> set[str]:
    return set(kernel.split(", ")) - {""}


def kernel_name(capture: Capture) -> str:
    return capture.body.name if capture.body is not None else capture.api
