"""Statements as runs of tokens, whose places outlive a change of layout or of other statements."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pallas_lsp.source.syntax import Syntax
from pallas_lsp.source.toplevel import is_main_block

_LAYOUT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER, tokenize.ENCODING})
_BLANK = frozenset({tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


class NoUnits(Exception):  # noqa: N818
    """The text cannot be divided: its lines or tokens are not counted as the interpreter counts them."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a piece of text without comments and blank lines.

    ``starts`` and ``ends``: (line, column), lines from 0 within the piece, columns in UTF-8 bytes.
    """

    digest: str
    starts: tuple[tuple[int, int], ...]
    ends: tuple[tuple[int, int], ...]

    @cached_property
    def first_on_line(self) -> dict[int, int]:
        """The token that begins first on each line."""
        found: dict[int, int] = {}
        for number, (line, _) in enumerate(self.starts):
            found.setdefault(line, number)
        return found


@dataclass(frozen=True)
class Unit:
    """A statement; ``line`` (1-based) is its first, with decorators, ``last`` its last."""

    path: str
    number: int
    line: int
    last: int
    tokens: Tokens


@lru_cache(maxsize=4096)
def tokens(piece: str) -> Tokens:
    """The tokens of a piece of text; raises NoUnits."""
    lines = piece.split("\n")
    starts: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    digest = hashlib.sha256()
    try:
        for token in tokenize.generate_tokens(io.StringIO(piece).readline):
            if token.type in _LAYOUT:
                continue
            blank = token.type in _BLANK
            digest.update(f"{token.type}\0{'' if blank else token.string}\0".encode("utf-8", "surrogatepass"))
            if not blank:
                starts.append(_in_bytes(lines, token.start))
                ends.append(_in_bytes(lines, token.end))
    except (tokenize.TokenError, SyntaxError) as error:
        raise NoUnits(str(error)) from error
    return Tokens(digest.hexdigest(), tuple(starts), tuple(ends))


def _in_bytes(lines: list[str], position: tuple[int, int]) -> tuple[int, int]:
    line, column = position[0] - 1, position[1]
    content = lines[line] if line < len(lines) else ""
    return line, column if content.isascii() else len(content[:column].encode("utf-8", "surrogatepass"))


def statements(syntax: Syntax) -> list[ast.stmt]:
    """The statements of the top level, and in place of a main block those in it."""
    found: list[ast.stmt] = []
    for statement in syntax.tree.body:
        if is_main_block(statement) and isinstance(statement, ast.If) and not statement.orelse:
            found += statement.body
        else:
            found.append(statement)
    return found


@lru_cache(maxsize=64)
def units(path: str, syntax: Syntax) -> tuple[Unit, ...]:
    """The units of a file, one for each of its ``statements``; raises NoUnits."""
    text = syntax.text
    if "\f" in text or text.startswith("\ufeff") or "\r" in text.replace("\r\n", ""):
        raise NoUnits("form feed, byte order mark or carriage return")
    lines = text.replace("\r\n", "\n").split("\n")
    found: list[Unit] = []
    for number, statement in enumerate(statements(syntax)):
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        if found and first <= found[-1].last:
            raise NoUnits("two statements on one line")
        found.append(Unit(path, number, first, last, tokens("\n".join(lines[first - 1 : last]) + "\n")))
    return tuple(found)


Place = tuple[int, int, int, int | None]
"""Unit (by its number in a sequence), token in it, lines and columns after the token's start."""


class Places:
    """From places in the text (line from 1, column in bytes or None) to places among units, and back."""

    def __init__(self, sequence: Sequence[Unit]) -> None:
        self._units = list(sequence)
        self._paths: dict[str, list[int]] = {}
        for index, unit in sorted(enumerate(sequence), key=lambda each: each[1].line):
            self._paths.setdefault(unit.path, []).append(index)
        self._lines = {path: [self._units[i].line for i in known] for path, known in self._paths.items()}

    def freeze(self, path: str, line: int, column: int | None, *, end: bool = False) -> Place | None:
        """None for a place outside of the units or between tokens."""
        known = self._paths.get(path)
        if known is None:
            return None
        at = bisect_right(self._lines[path], line) - 1
        if at < 0 or self._units[known[at]].last < line:
            return None
        index = known[at]
        unit = self._units[index]
        spot = self._token(unit.tokens, line - unit.line, column, end=end)
        return (index, *spot) if spot is not None else None

    def thaw(self, place: Place) -> tuple[int, int | None]:
        """(line, column)"""
        index, token, lines, columns = place
        unit = self._units[index]
        line, column = unit.tokens.starts[token]
        if columns is None:
            return unit.line + line + lines, None
        return unit.line + line + lines, columns + (column if lines == 0 else 0)

    @staticmethod
    def _token(tokens: Tokens, line: int, column: int | None, *, end: bool) -> tuple[int, int, int | None] | None:
        if column is None:
            first = tokens.first_on_line.get(line)
            if first is not None:
                return first, 0, None
            token = bisect_left(tokens.starts, (line, 0)) - 1
            inside = token >= 0 and tokens.ends[token][0] >= line
            return (token, line - tokens.starts[token][0], None) if inside else None
        here = (line, column)
        token = (bisect_left if end else bisect_right)(tokens.starts, here) - 1
        if token < 0:
            return None
        inside = here <= tokens.ends[token] if end else here < tokens.ends[token]
        if not inside:
            return None
        start = tokens.starts[token]
        return token, line - start[0], column - (start[1] if line == start[0] else 0)
