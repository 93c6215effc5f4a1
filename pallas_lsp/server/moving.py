"""Where a place of an older text is in a newer one.

An edit while typing changes one region: what is before it stays, what is after it moves.  Inside a larger region
(formatting, a pasted block) lines are matched by a line diff.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher

from pallas_lsp.model import Position, Range
from pallas_lsp.source.positions import Lines

_DIFF_LINES = 2000
"""A changed region with more lines than this is not diffed; what it held is dropped."""


class Move:
    """Maps ranges of ``old`` to ``new``."""

    def __init__(self, old: Lines, new: Lines) -> None:
        self._old = old
        self._new = new
        self.same = old.text == new.text
        if self.same:
            return
        shortest = min(len(old.text), len(new.text))
        self._prefix = _common(old.text, new.text, shortest, _same_start)
        self._suffix = _common(old.text, new.text, shortest - self._prefix, _same_end)
        self._line_map: dict[int, int] | None = None

    def range(self, range_: Range) -> Range | None:
        """The range in the new text, or None where its text is gone."""
        if self.same:
            return range_
        start, end = self._old.offset(range_.start), self._old.offset(range_.end)
        shift = len(self._new.text) - len(self._old.text)
        edit_end = len(self._old.text) - self._suffix
        if end <= self._prefix:
            return self._range(start, end)
        if start >= edit_end:
            return self._range(start + shift, end + shift)
        if start <= self._prefix and end >= edit_end:  # the edit is inside the range: it grows or shrinks
            return self._range(start, end + shift) if end + shift > start or start == end else None
        return self._by_lines(range_)

    def _range(self, start: int, end: int) -> Range:
        return Range(self._clamped(self._new.position(start)), self._clamped(self._new.position(end)))

    def _clamped(self, position: Position) -> Position:
        """A position that is in no line ending."""
        return Position(position.line, min(position.character, len(self._new[position.line])))

    def _by_lines(self, range_: Range) -> Range | None:
        start, end = self._position(range_.start, is_start=True), self._position(range_.end, is_start=False)
        if start is None:
            return None
        if end is None or end <= start:
            return self._new.line_range(start.line)
        return Range(start, end)

    def _position(self, position: Position, *, is_start: bool) -> Position | None:
        line = self._lines().get(position.line)
        if line is None:
            return None
        before, after = self._old[position.line], self._new[line]
        character = min(position.character, len(before))
        shortest = min(len(before), len(after))
        start = _common(before, after, shortest, _same_start)
        end = _common(before, after, shortest - start, _same_end)
        unmoved, shifted = character <= start, character >= len(before) - end
        # Where text was inserted at the very place, a range starts after it and ends before it.
        if shifted and (is_start or not unmoved):
            return Position(line, character + len(after) - len(before))
        return Position(line, character if unmoved else min(character, len(after)))

    def _lines(self) -> dict[int, int]:
        """Old line to new line, for the lines that exist in both; changed lines are paired in their order."""
        if self._line_map is not None:
            return self._line_map
        self._line_map = {}
        first = self._old.position(self._prefix).line
        last_old = self._old.position(len(self._old.text) - self._suffix).line
        last_new = self._new.position(len(self._new.text) - self._suffix).line
        if max(last_old, last_new) - first > _DIFF_LINES:
            return self._line_map
        old = [self._old[line] for line in range(first, last_old + 1)]
        new = [self._new[line] for line in range(first, last_new + 1)]
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag in ("equal", "replace"):
                for i, j in zip(range(i1, i2), range(j1, j2), strict=False):
                    self._line_map[first + i] = first + j
        return self._line_map


def _same_start(a: str, b: str, length: int) -> bool:
    return a[:length] == b[:length]


def _same_end(a: str, b: str, length: int) -> bool:
    return length == 0 or a[-length:] == b[-length:]


def _common(a: str, b: str, limit: int, same: Callable[[str, str, int], bool]) -> int:
    """The greatest length for which ``same`` holds, by bisection: slices compare at memory speed."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if same(a, b, middle):
            low = middle
        else:
            high = middle - 1
    return low
