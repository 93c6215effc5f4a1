"""Lines and columns: the only place that converts between the ways to count them.

Lines end where Python's tokenizer and LSP end them: at ``\\n``, ``\\r\\n`` and ``\\r`` and nowhere else
(``str.splitlines`` also splits at form feeds, U+2028 and more, which shifts every line after them).

Columns: the parser, tracebacks and MLIR count UTF-8 bytes, ``model.Position`` counts code points, LSP and our JSON
count UTF-16 code units.  Every conversion clamps to the text, because the text may be newer than the column.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from functools import cached_property

from pallas_lsp.model import Frame, Position, Range

_LINE_END = re.compile(r"\r\n|\r|\n")
_BOM = "\ufeff"


class Lines:
    """The lines of a text, and positions in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        starts = [0]
        ends = []
        for match in _LINE_END.finditer(text):
            ends.append(match.start())
            starts.append(match.end())
        ends.append(len(text))
        self._starts = starts
        self._ends = ends

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, line: int) -> str:
        """A line (0-based) without its ending; an empty string beyond the end."""
        if not 0 <= line < len(self._starts):
            return ""
        return self.text[self._starts[line] : self._ends[line]]

    @cached_property
    def newline(self) -> str:
        """The line ending that the text uses."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"

    @property
    def end(self) -> Position:
        return Position(len(self) - 1, len(self[len(self) - 1]))

    # -- code points --------------------------------------------------------------------------------------------------

    def offset(self, position: Position) -> int:
        """The index in ``text`` of a position, clamped to its line and to the text."""
        if position.line < 0:
            return 0
        if position.line >= len(self):
            return len(self.text)
        start, end = self._starts[position.line], self._ends[position.line]
        return min(start + max(position.character, 0), end)

    def position(self, offset: int) -> Position:
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        return Position(line, offset - self._starts[line])

    def line_start(self, offset: int) -> int:
        """The offset where the line of an offset starts."""
        return self._starts[bisect_right(self._starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """The offset where the line of an offset ends, before its line ending."""
        return self._ends[bisect_right(self._starts, offset) - 1]

    def next_line(self, offset: int) -> int:
        """The offset where the line after that of an offset starts; the end of the text after the last line."""
        index = bisect_right(self._starts, offset)
        return self._starts[index] if index < len(self._starts) else len(self.text)

    def slice(self, range_: Range) -> str:
        return self.text[self.offset(range_.start) : self.offset(range_.end)]

    def range(self, start: int, end: int) -> Range:
        """The range between two offsets."""
        return Range(self.position(start), self.position(end))

    def line_range(self, line: int) -> Range:
        """A line without its indentation and trailing blanks."""
        line = min(max(line, 0), len(self) - 1)
        content = self[line]
        stripped = content.strip()
        start = len(content) - len(content.lstrip()) if stripped else 0
        return Range(Position(line, start), Position(line, start + len(stripped)))

    # -- UTF-8 bytes (ast, tracebacks, MLIR) --------------------------------------------------------------------------

    def from_bytes(self, line: int, column: int) -> Position:
        """A position from a 0-based line and a column in UTF-8 bytes."""
        content = self[line]
        # The tokenizer drops a byte order mark before it counts.
        skipped = 1 if line == 0 and content.startswith(_BOM) else 0
        content = content[skipped:]
        if content.isascii():
            return Position(line, skipped + min(max(column, 0), len(content)))
        prefix = content.encode("utf-8", "surrogatepass")[: max(column, 0)]
        return Position(line, skipped + len(prefix.decode("utf-8", "ignore")))

    def node_range(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias | ast.excepthandler) -> Range:
        start = self.from_bytes(node.lineno - 1, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return Range(start, start)
        return Range(start, self.from_bytes(node.end_lineno - 1, node.end_col_offset))

    def frame_range(self, frame: Frame) -> Range | None:
        """The exact range of a frame, or None where the interpreter gave no columns."""
        if frame.column is None or frame.end_column is None:
            return None
        start = self.from_bytes(frame.line - 1, frame.column)
        end = self.from_bytes((frame.end_line or frame.line) - 1, frame.end_column)
        return Range(start, end) if start < end else None

    # -- UTF-16 code units (LSP, JSON) --------------------------------------------------------------------------------

    def to_utf16(self, position: Position) -> tuple[int, int]:
        """(line, character) with the character in UTF-16 code units."""
        prefix = self[position.line][: max(position.character, 0)]
        return position.line, utf16_length(prefix)

    def from_utf16(self, line: int, character: int) -> Position:
        content = self[line]
        if content.isascii():
            return Position(line, min(max(character, 0), len(content)))
        units = content.encode("utf-16-le", "surrogatepass")[: 2 * max(character, 0)]
        return Position(line, len(units.decode("utf-16-le", "ignore")))

    # -- the units that an LSP client asked for -----------------------------------------------------------------------

    def to_units(self, position: Position, encoding: str) -> tuple[int, int]:
        """(line, character) with the character in ``encoding``: ``utf-8``, ``utf-16`` or ``utf-32``."""
        if encoding == "utf-16":
            return self.to_utf16(position)
        prefix = self[position.line][: max(position.character, 0)]
        return position.line, len(prefix) if encoding == "utf-32" else len(prefix.encode("utf-8", "surrogatepass"))

    def from_units(self, line: int, character: int, encoding: str) -> Position:
        content = self[line]
        if encoding == "utf-16":
            return self.from_utf16(line, character)
        if encoding == "utf-32" or content.isascii():
            return Position(line, min(max(character, 0), len(content)))
        prefix = content.encode("utf-8", "surrogatepass")[: max(character, 0)]
        return Position(line, len(prefix.decode("utf-8", "ignore")))


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split_lines(text: str) -> list[str]:
    """The lines of a text without their endings; one more than there are line endings."""
    return _LINE_END.split(text)
