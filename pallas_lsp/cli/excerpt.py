"""Source excerpts with ranges underlined, drawn as compilers draw them.

    12 |     acc = pl.run_state(body)(plgpu.ACC((64, 128)))
       |           ------------------ called here
       |                              ^^^^^^^^^^^^^^^^^^^^

Columns on the screen are not columns of the text: tabs are widened, characters that take two cells or none are
measured, and control characters, which would steer the terminal, are shown as symbols.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text

from pallas_lsp.model import Range
from pallas_lsp.source.positions import Lines

TAB = 4
GUTTER_STYLE = "bold blue"
_LONGEST_SPAN = 8
_SHOWN_AT_START = 4
_SHOWN_AT_END = 2


@dataclass(frozen=True)
class Mark:
    """A range to underline.  The primary one is drawn with ``^``, the others with ``-``."""

    range: Range
    label: str = ""
    style: str = "bold red"
    primary: bool = True

    @property
    def char(self) -> str:
        return "^" if self.primary else "-"

    @property
    def last_line(self) -> int:
        """The last line with a character of the range."""
        start, end = self.range.start, self.range.end
        return end.line - 1 if end.character == 0 and end.line > start.line else end.line

    @property
    def is_long(self) -> bool:
        return self.last_line > self.range.start.line


def printable(text: str) -> str:
    """Text without characters that would steer a terminal or reorder a line."""
    return "".join(map(_printable, text))


def _printable(char: str) -> str:
    if char == "\t":
        return " " * TAB
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if char in "\u200c\u200d" or 0xFE00 <= code <= 0xFE0F:
        return char  # joiners and variation selectors belong to the character before them
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return "\ufffd"
    return char


class ScreenLine:
    """One line as it is shown: the cells before each of its characters, and a window on it where it is too long."""

    def __init__(self, line: str, width: int, focus: int = 0) -> None:
        self._pieces = [_printable(char) for char in line]
        self._first = 0
        self._last = len(self._pieces)
        if self._cells(0, len(self._pieces)) > width:
            self._crop(width, focus)
        shown = "".join(self._pieces[self._first : self._last])
        self.text = ("…" if self._first else "") + shown + ("…" if self._last < len(self._pieces) else "")

    def _cells(self, start: int, end: int) -> int:
        return cell_len("".join(self._pieces[start:end]))

    def _crop(self, width: int, focus: int) -> None:
        focus = min(max(focus, 0), len(self._pieces))
        before = width // 3
        if self._cells(0, min(focus, width)) + 10 < width and focus < width:
            self._first = 0
        else:
            self._first = focus
            while self._first > 0 and self._cells(self._first - 1, focus) <= before:
                self._first -= 1
        # Far fewer characters than there are on a line of two megabytes: add one by one from the window's start.
        cells = 2
        self._last = self._first
        while self._last < len(self._pieces):
            cells += cell_len(self._pieces[self._last])
            if cells > width:
                break
            self._last += 1

    def column(self, character: int) -> int:
        """The cell where a character of the line begins."""
        if character <= self._first:
            return 1 if self._first else 0
        shown = min(character, self._last, len(self._pieces))
        return (1 if self._first else 0) + self._cells(self._first, shown)


class _Row:
    """Cells with styles, written in any order."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[str, str]] = {}

    def put(self, column: int, text: str, style: str) -> None:
        for offset, char in enumerate(text):
            self._cells[column + offset] = (char, style)

    def text(self) -> Text:
        text = Text()
        for column in range(max(self._cells, default=-1) + 1):
            char, style = self._cells.get(column, (" ", ""))
            text.append(char, style)
        return text


def gutter_width(marks: Iterable[Mark]) -> int:
    return max((len(str(mark.last_line + 1)) for mark in marks), default=1)


def clamp(range_: Range, lines: Lines) -> Range:
    """A range inside the text: a finding may be older than the text."""
    start = lines.position(lines.offset(range_.start))
    end = lines.position(lines.offset(range_.end))
    return Range(start, max(start, end))


def draw(lines: Lines, marks: Sequence[Mark], gutter: int, width: int) -> list[Text]:
    """The rows of an excerpt that shows all marks of one file."""
    inside = [replace(mark, range=clamp(mark.range, lines)) for mark in marks]
    drawing = _Drawing(lines, sorted(inside, key=lambda mark: (mark.range.start, not mark.is_long)), gutter, width)
    return drawing.rows()


class _Drawing:
    """Marks over several lines have a bar each, in an area between the line numbers and the text."""

    def __init__(self, lines: Lines, marks: Sequence[Mark], gutter: int, width: int) -> None:
        self._lines = lines
        self._marks = marks
        self._gutter = gutter
        self._bars = {id(mark): 2 * depth for depth, mark in enumerate(mark for mark in marks if mark.is_long)}
        self._area = 2 * len(self._bars)
        self._width = max(width - gutter - len(" | ") - self._area, 20)
        self._opened: list[Mark] = []

    def rows(self) -> list[Text]:
        rows = [self._numbered("", Text())]
        previous: int | None = None
        for number in self._shown():
            if previous is not None and number > previous + 1:
                gap = self._bar_row().text() if self._area else Text()
                rows.append(Text("...".ljust(self._gutter + len(" | ")), GUTTER_STYLE).append_text(gap))
            previous = number
            rows += self._line(number)
        for row in rows:
            row.rstrip()
        return rows

    def _shown(self) -> list[int]:
        shown: set[int] = set()
        for mark in self._marks:
            first, last = mark.range.start.line, mark.last_line
            if last - first < _LONGEST_SPAN:
                shown.update(range(first, last + 1))
            else:
                shown.update(range(first, first + _SHOWN_AT_START), range(last - _SHOWN_AT_END + 1, last + 1))
        shown.update(line + 1 for line in tuple(shown) if line + 2 in shown)
        return sorted(shown)

    def _line(self, number: int) -> list[Text]:
        line = self._lines[number]
        here = [mark for mark in self._marks if number in (mark.range.start.line, mark.last_line)]
        starts = [mark.range.start.character if mark.range.start.line == number else 0 for mark in here]
        screen = ScreenLine(line, self._width, min(starts, default=0))
        starting = [mark for mark in here if mark.is_long and mark.range.start.line == number]
        at_margin = [mark for mark in starting if not line[: mark.range.start.character].strip()]
        head = self._bar_row()
        for mark in at_margin:
            head.put(self._bars[id(mark)], "/", mark.style)
        text = head.text()
        text.append(" " * (self._area - len(text)) + screen.text)
        rows = [self._numbered(str(number + 1), text)]
        for mark in starting:
            if mark not in at_margin:
                rows.append(self._numbered("", self._connector(mark, screen.column(mark.range.start.character))))
            self._opened.append(mark)
        rows += [self._numbered("", self._underline(mark, screen)) for mark in here if not mark.is_long]
        for mark in [mark for mark in self._opened if mark.last_line == number]:
            end = mark.range.end.character if mark.range.end.line == number else len(line)
            connector = self._connector(mark, max(screen.column(end) - 1, 0))
            rows.append(self._numbered("", _labelled(connector, mark)))
            self._opened.remove(mark)
        return rows

    def _numbered(self, number: str, text: Text) -> Text:
        return Text(f"{number.rjust(self._gutter)} | ", GUTTER_STYLE).append_text(text)

    def _bar_row(self) -> _Row:
        row = _Row()
        for mark in self._opened:
            row.put(self._bars[id(mark)], "|", mark.style)
        return row

    def _connector(self, mark: Mark, column: int) -> Text:
        """From a mark's bar to the character where it begins or ends."""
        row = _Row()
        bar = self._bars[id(mark)]
        row.put(bar + 1, "_" * (self._area + column - bar - 1) + mark.char, mark.style)
        for other in self._opened:
            row.put(self._bars[id(other)], "|", other.style)
        return row.text()

    def _underline(self, mark: Mark, screen: ScreenLine) -> Text:
        row = self._bar_row()
        start = screen.column(mark.range.start.character)
        in_line = mark.range.end.line == mark.range.start.line
        end = screen.column(mark.range.end.character) if in_line else cell_len(screen.text)
        row.put(self._area + start, mark.char * max(end - start, 1), mark.style)
        return _labelled(row.text(), mark)


def _labelled(text: Text, mark: Mark) -> Text:
    return text.append(f" {mark.label}", mark.style) if mark.label else text
