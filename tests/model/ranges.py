"""Places and changes as LSP has them: lines, and UTF-16 units within a line."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable

from lsprotocol import types

_MOST_COMPARED = 800


def changes(old: str, new: str, source: random.Random) -> list[types.TextDocumentContentChangeEvent]:
    """As one range, as a range for each changed place, or as the whole text."""
    chance = source.random()
    if chance < 0.1:
        return [types.TextDocumentContentChangeWholeDocument(new)]
    return [one_change(old, new)] if chance < 0.6 else changes_of(old, new)


def place(text: str, offset: int) -> types.Position:
    """A place as LSP counts: lines, and UTF-16 units within them."""
    line = text.count("\n", 0, offset)
    begin = text.rfind("\n", 0, offset) + 1
    return types.Position(line, len(text[begin:offset].encode("utf-16-le")) // 2)


def offset_of(text: str, position: types.Position) -> int:
    lines = text.split("\n")
    units = lines[position.line].encode("utf-16-le")[: position.character * 2]
    return sum(len(line) + 1 for line in lines[: position.line]) + len(units.decode("utf-16-le"))


def _change(text: str, start: int, end: int, new: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(place(text, start), place(text, end)), new)


def _ends(old: str, new: str) -> tuple[int, int]:
    """How much is the same at the start and at the end."""
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = min(len(old), len(new)) - start
    return start, next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)


def one_change(old: str, new: str) -> types.TextDocumentContentChangePartial:
    start, end = _ends(old, new)
    return _change(old, start, len(old) - end, new[start : len(new) - end])


def changes_of(old: str, new: str) -> list[types.TextDocumentContentChangeEvent]:
    """The last first, so that each is in the text as the ones before it leave it."""
    start, end = _ends(old, new)
    middle, becomes = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(middle), len(becomes)) > _MOST_COMPARED:
        return [one_change(old, new)]
    found = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, middle, becomes, autojunk=False).get_opcodes():
        if tag != "equal":
            found.append(_change(old, start + i1, start + i2, becomes[j1:j2]))
    return found[::-1]


def applied(text: str, edits: Iterable[types.TextEdit]) -> str:
    found = [(offset_of(text, e.range.start), offset_of(text, e.range.end), e.new_text) for e in edits]
    for start, end, new in sorted(found, key=lambda each: each[:2], reverse=True):
        text = text[:start] + new + text[end:]
    return text


def is_inside(range_: types.Range, lines: list[str]) -> bool:
    start, end = range_.start, range_.end
    return (
        (start.line, start.character) <= (end.line, end.character)
        and end.line < len(lines)
        and all(2 * at.character <= len(lines[at.line].encode("utf-16-le")) for at in (start, end))
    )
