"""Excerpts: the caret stands under the character, whatever its width, and long things are cut."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pallas_lsp.cli.excerpt import Mark, draw, gutter_width, printable
from pallas_lsp.model import Position, Range
from pallas_lsp.source.positions import Lines


def shown(text: str, *marks: Mark, width: int = 100) -> str:
    return "\n".join(row.plain for row in draw(Lines(text), marks, gutter_width(marks), width))


def mark(line: int, start: int, end_line: int, end: int, label: str = "", primary: bool = True) -> Mark:
    return Mark(Range(Position(line, start), Position(end_line, end)), label, primary=primary)


def test_one_range() -> None:
    assert shown("a = f(x, y)\n", mark(0, 6, 0, 7, "no value")) == ("  |\n1 | a = f(x, y)\n  |       ^ no value")


def test_tabs_and_wide_characters_keep_the_caret_in_place() -> None:
    text = '\tx = "日本😀" + bad\n'
    assert shown(text, mark(0, text.index("bad"), 0, text.index("bad") + 3)) == (
        '  |\n1 |     x = "日本😀" + bad\n  |                    ^^^'
    )
    assert shown(text, mark(0, 6, 0, 9)) == '  |\n1 |     x = "日本😀" + bad\n  |          ^^^^^^'


def test_combining_characters_take_no_cell() -> None:
    text = "s = 'e\u0301\u0301' + bad"
    rows = shown(text, mark(0, text.index("bad"), 0, len(text))).split("\n")
    assert rows[2].index("^") - 4 == cell_len("s = 'e' + ")


def test_control_characters_cannot_steer_the_terminal() -> None:
    text = "x = '\x1b[31m\x07\u202e' + bad"
    drawn = shown(text, mark(0, text.index("bad"), 0, len(text)))
    assert not any(char in drawn for char in "\x1b\x07\u202e")
    assert drawn.split("\n")[1].index("bad") == drawn.split("\n")[2].index("^")


def test_several_lines_from_the_middle_of_a_line() -> None:
    text = "out = call(\n    a,\n    b,\n)(x)\n"
    assert shown(text, mark(0, 6, 3, 1, "here")) == "\n".join(
        [
            "  |",
            "1 |   out = call(",
            "  |  _______^",
            "2 | |     a,",
            "3 | |     b,",
            "4 | | )(x)",
            "  | |_^ here",
        ]
    )


def test_several_lines_from_the_start_of_a_line() -> None:
    text = "call(\n    a,\n)\n"
    assert shown(text, mark(0, 0, 2, 1)) == "\n".join(["  |", "1 | / call(", "2 | |     a,", "3 | | )", "  | |_^"])


def test_a_range_that_ends_before_a_line_does_not_show_that_line() -> None:
    assert shown("ab\ncd\n", mark(0, 0, 1, 0)) == "  |\n1 | ab\n  | ^^"


def test_many_lines_are_cut_in_the_middle() -> None:
    text = "call(\n" + "".join(f"    a{n},\n" for n in range(20)) + ")\n"
    drawn = shown(text, mark(0, 0, 21, 1))
    assert "..." in drawn
    assert "a1," in drawn
    assert "a10" not in drawn
    assert drawn.endswith("   | |_^")


def test_two_ranges_of_one_file_are_one_excerpt() -> None:
    text = "acc = 1\n\n\n\nuse(acc)\n"
    assert shown(text, mark(4, 4, 4, 7), mark(0, 0, 0, 3, "made here", primary=False)) == "\n".join(
        ["  |", "1 | acc = 1", "  | --- made here", "...", "5 | use(acc)", "  |     ^^^"]
    )


def test_a_long_line_is_cut_around_the_range() -> None:
    text = "x = [" + "12345, " * 300_000 + "BAD, " + "12345, " * 1000 + "]"
    start = text.index("BAD")
    began = time.monotonic()
    rows = shown(text, mark(0, start, 0, start + 3), width=80).split("\n")
    assert time.monotonic() - began < 5
    assert all(cell_len(row) <= 80 for row in rows)
    assert rows[1].index("BAD") == rows[2].index("^^^")
    assert rows[1].endswith("…")


def test_a_range_beyond_the_text_is_moved_into_it() -> None:
    assert shown("a\nb", mark(7, 3, 9, 0)).endswith("^")


@given(
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.tuples(*[st.integers(0, 8)] * 4),
    st.tuples(*[st.integers(0, 8)] * 4),
    st.integers(20, 80),
)
def test_any_text_and_any_range_can_be_drawn(text: str, one: tuple[int, ...], two: tuple[int, ...], width: int) -> None:
    drawn = shown(text, mark(*one), mark(*two, label="other", primary=False), width=width)  # type: ignore[misc, arg-type]
    assert "^" in drawn
    assert all(row == row.rstrip() for row in drawn.split("\n"))


def test_printable_keeps_text() -> None:
    assert printable("größer 日本 😀 a\u0301 👩‍👧") == "größer 日本 😀 a\u0301 👩‍👧"
