from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lsp.model import Frame, Position, Range
from pallas_lsp.source.positions import Lines, split_lines, utf16_length

TEXTS = st.text(alphabet=st.sampled_from("ab é😀\n\r\f\u2028\x0b\x85\t"), max_size=40)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a", ""]),
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("a\x0cb\u2028c\x0bd\x85e", ["a\x0cb\u2028c\x0bd\x85e"]),
        ("\r\r\n\n", ["", "", "", ""]),
    ],
)
def test_lines_end_where_the_tokenizer_and_lsp_end_them(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines
    own = Lines(text)
    assert [own[number] for number in range(len(own))] == lines
    assert own[len(own)] == "" and own[-1] == ""


def test_lines_agree_with_the_parser() -> None:
    text = "a = 1\x0c\nb = '\u2028'\rc = 2\r\nd = 3\n\x0c  \ne = '''\n'''\nf = 1"
    statements = ast.parse(text).body
    lines = Lines(text)
    for statement in statements:
        assert lines[statement.lineno - 1].startswith(statement.targets[0].id)  # type: ignore[attr-defined]


@given(TEXTS, st.integers(0, 45))
def test_offsets_and_positions_are_each_others_inverse(text: str, offset: int) -> None:
    lines = Lines(text)
    offset = min(offset, len(text))
    position = lines.position(offset)
    back = lines.offset(position)
    # Inside \r\n there is no position of its own.
    assert back == offset or text[offset - 1 : offset + 1] == "\r\n"


@given(TEXTS, st.integers(-2, 8), st.integers(-2, 60))
def test_positions_outside_the_text_are_clamped(text: str, line: int, character: int) -> None:
    lines = Lines(text)
    assert 0 <= lines.offset(Position(line, character)) <= len(text)
    lines.from_bytes(line, character)
    lines.from_utf16(line, character)
    lines.to_utf16(Position(line, character))


@given(TEXTS)
def test_utf16_there_and_back(text: str) -> None:
    lines = Lines(text)
    for number in range(len(lines)):
        for character in range(len(lines[number]) + 1):
            position = Position(number, character)
            line, units = lines.to_utf16(position)
            assert lines.from_utf16(line, units) == position
            assert units == len(lines[number][:character].encode("utf-16-le")) // 2


def test_the_three_ways_to_count_columns() -> None:
    text = 's = "é😀"; value = f(x)\n'
    lines = Lines(text)
    call = ast.parse(text).body[1].value  # type: ignore[attr-defined]
    range_ = lines.node_range(call)
    assert lines.slice(range_) == "f(x)"
    assert range_.start.character == 18
    assert call.col_offset == 22
    assert lines.to_utf16(range_.start) == (0, 19)
    assert utf16_length("é😀") == 3


def test_half_a_character_is_the_place_before_it() -> None:
    lines = Lines("😀x")
    assert lines.from_utf16(0, 1) == Position(0, 0)
    assert lines.from_bytes(0, 2) == Position(0, 0)
    assert lines.from_bytes(0, 4) == Position(0, 1)


def test_a_byte_order_mark_counts_as_no_column_for_the_parser() -> None:
    lines = Lines("\ufeffx = 1\nx")
    assert lines.from_bytes(0, 4) == Position(0, 5)
    assert lines.from_bytes(1, 0) == Position(1, 0)


def test_frames() -> None:
    lines = Lines("a = 1\nb = g(a)\n")
    frame = Frame("f.py", 2, 4, 2, 8)
    assert lines.slice(lines.frame_range(frame) or Range(Position(0, 0), Position(0, 0))) == "g(a)"
    assert lines.frame_range(Frame("f.py", 2)) is None
    assert lines.frame_range(Frame("f.py", 2, 4, 2, 4)) is None
    assert lines.frame_range(Frame("f.py", 9, 4, 9, 8)) is None


def test_line_helpers() -> None:
    lines = Lines("ab\r\n  cd  \n")
    assert lines.newline == "\r\n"
    assert lines.slice(lines.line_range(1)) == "cd"
    assert lines.line_range(99) == Range(Position(2, 0), Position(2, 0))
    assert (lines.line_start(5), lines.line_end(5), lines.next_line(5)) == (4, 10, 11)
    assert lines.next_line(11) == 11
    assert lines.end == Position(2, 0)
