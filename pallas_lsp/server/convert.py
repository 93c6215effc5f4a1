"""Between our ranges and the client's."""

from __future__ import annotations

from lsprotocol import types

from pallas_lsp.model import Position, Range
from pallas_lsp.source.positions import Lines


def to_position(position: types.Position, lines: Lines, encoding: str) -> Position:
    return lines.from_units(position.line, position.character, encoding)


def to_range(range_: types.Range, lines: Lines, encoding: str) -> Range:
    return Range(to_position(range_.start, lines, encoding), to_position(range_.end, lines, encoding))


def from_position(position: Position, lines: Lines, encoding: str) -> types.Position:
    line, character = lines.to_units(position, encoding)
    return types.Position(line, character)


def from_range(range_: Range, lines: Lines, encoding: str) -> types.Range:
    return types.Range(from_position(range_.start, lines, encoding), from_position(range_.end, lines, encoding))


def overlaps(one: Range, other: Range) -> bool:
    """Whether two ranges share a place; touching counts, since a cursor is an empty range."""
    return one.start <= other.end and other.start <= one.end
