"""Places that outlive a change of layout."""

from __future__ import annotations

import ast

import pytest

from pallas_lsp.source.syntax import parse
from pallas_lsp.source.units import NoUnits, Places, units

BEFORE = '''import jax

def first(x):
    return x


@jax.jit
def second(a, b):
    """Twice."""
    text = """one
    two"""
    return jax.numpy.add(a, b * 2) + len("é") * a
'''
AFTER = (
    '''# A comment.
import jax  # another
def first(x):
    return x + 1
@jax.jit
def second(
    a,
    b,
):
        """Twice."""
        # in between

        text = """one
    two"""
        return (
            jax.numpy.add(
                a, b * 2)  + len("é")*a
        )
'''.replace("    a,\n    b,\n", "    a, b\n")
    .replace("(\n            jax", "jax")
    .replace("*a\n        )", "*a")
)


def expressions(text: str) -> list[ast.expr]:
    return [node for node in ast.walk(ast.parse(text).body[2]) if isinstance(node, ast.expr)]


def test_every_expression_of_an_unchanged_statement_is_found_again() -> None:
    before = Places([units("f", parse(BEFORE))[2]])
    after = Places([units("f", parse(AFTER))[2]])
    old, new = expressions(BEFORE), expressions(AFTER)
    assert [ast.dump(node) for node in old] == [ast.dump(node) for node in new]
    for one, other in zip(old, new, strict=True):
        start = before.freeze("f", one.lineno, one.col_offset)
        end = before.freeze("f", one.end_lineno or 0, one.end_col_offset, end=True)
        assert start is not None
        assert end is not None
        assert after.thaw(start) == (other.lineno, other.col_offset), ast.unparse(one)
        assert after.thaw(end) == (other.end_lineno, other.end_col_offset), ast.unparse(one)


def test_the_digest_knows_what_is_code() -> None:
    def digest(text: str) -> str:
        return units("f", parse(text))[0].tokens.digest

    one = digest("def f(x):\n    return x\n")
    assert digest("def f( x ) :\n\n  # comment\n  return x\n") == one
    assert digest("def f(x):\n    return y\n") != one
    assert digest("def f(x):\n    x\n    return x\n") != one
    assert digest('def f(x):\n    return "x"\n') != digest('def f(x):\n    return "x "\n')
    assert digest("if a:\n    b\n    c\n") != digest("if a:\n    b\nc\n")


def test_places_outside_are_none() -> None:
    places = Places([units("f", parse(BEFORE))[2]])
    assert places.freeze("f", 3, 0) is None
    assert places.freeze("other", 8, 0) is None
    assert places.freeze("f", 8, 3) is None  # between two tokens
    assert places.freeze("f", 99, 0) is None


def test_a_line_alone_is_the_line_of_its_first_token() -> None:
    before, after = (Places([units("f", parse(text))[2]]) for text in (BEFORE, AFTER))
    found = before.freeze("f", 7, None)  # the decorator's, as a function's first line is
    assert found is not None
    assert after.thaw(found) == (5, None)
    inside = before.freeze("f", 11, None)  # of a string
    assert inside is not None
    assert AFTER.splitlines()[(after.thaw(inside))[0] - 1] == '    two"""'


@pytest.mark.parametrize("text", ["a = 1\f\nb = 2\n", "\ufeffa = 1\n", "a = 1; b = 2\n", "a = 1\rb = 2\n"])
def test_what_is_counted_in_another_way_is_not_divided(text: str) -> None:
    with pytest.raises(NoUnits):
        units("f", parse(text))
