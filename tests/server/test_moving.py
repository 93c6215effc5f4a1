"""Where places of an older text are in a newer one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lsp.model import Range
from pallas_lsp.server.moving import Move
from pallas_lsp.source.positions import Lines


def moved(old: str, new: str, part: str) -> str | None:
    """The text at the new place of a part of the old text."""
    lines = Lines(old)
    start = old.index(part)
    range_ = Move(lines, Lines(new)).range(lines.range(start, start + len(part)))
    return Lines(new).slice(range_) if range_ is not None else None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nX\nb\n", "a\nX\nb\n"),
        ("a\nX\nb\n", "new\n\na\nX\nb\n"),
        ("a\nX\nb\n", "X\nb\n"),
        ("f(a, X)", "f(abc, X)"),
        ("f(X, a)", "f(X, abc)"),
        ("f(X)", "  f(X)"),
        ("a\r\nX\r\n", "a\r\n\r\nX\r\n"),
        ("\U0001f600 X", "\U0001f600\U0001f600 X"),
        ("a\x0cb\nX\n", "a\x0cb\u2028\nX\n"),
        # a formatter: several regions change at once
        ("x=1\ny = X\nz=3\n", "x = 1\ny = X\nz = 3\n"),
        ("x=1\ny=X\nz=3\n", "x = 1\ny = X\nz = 3\n"),
        ("if a:\n  b\n  X\n  c\nd\n", "if a:\n    b\n    X\n    c\n\nd\n"),
        ("a\nb\nX\nc\n", "b\na2\nX\nc2\n"),
    ],
)
def test_a_part_that_is_still_there_is_found(old, new):
    assert moved(old, new, "X") == "X"


def test_an_edit_inside_grows_and_shrinks_the_range():
    assert moved("f(alpha)", "f(alp_ha)", "alpha") == "alp_ha"
    assert moved("f(alpha)", "f(aa)", "alpha") == "aa"


def test_what_is_gone_is_dropped():
    assert moved("a\nX\nb\n", "a\nb\n", "X") is None
    assert moved("a\nX\nb\n", "", "X") is None


def test_a_huge_region_is_not_diffed():
    old = "".join(f"line {n}\n" for n in range(5000)) + "X\n" + "".join(f"other {n}\n" for n in range(5000))
    new = old.replace("line", "LINE").replace("other", "OTHER")
    assert moved(old, new, "X") is None


TEXTS = st.text(st.sampled_from("ab\n\r\x0c\u2028\U0001f600( "), max_size=60)


@given(TEXTS, TEXTS, st.data())
def test_every_place_is_inside_the_new_text(old, new, data):
    lines, other = Lines(old), Lines(new)
    start = data.draw(st.integers(0, len(old)))
    end = data.draw(st.integers(start, len(old)))
    first, last = (lines.position(lines.offset(lines.position(offset))) for offset in (start, end))
    range_ = Move(lines, other).range(Range(first, last))
    if range_ is not None:
        assert range_.start <= range_.end <= other.end
        assert other.position(other.offset(range_.start)) == range_.start
        assert other.position(other.offset(range_.end)) == range_.end


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_one_edit_before_or_after_never_changes_what_is_marked(before, inserted, marked, after):
    marked = f"[{marked}]"
    tail = f"\n{after}"
    old, new = f"{before}\n{marked}{tail}", f"{before}{inserted}\n{marked}{tail}"
    lines = Lines(old)
    start = len(before) + 1
    range_ = Move(lines, Lines(new)).range(lines.range(start, start + len(marked)))
    assert range_ is not None
    assert Lines(new).slice(range_) == marked
