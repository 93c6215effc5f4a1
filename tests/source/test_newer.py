"""Syntax of later Pythons is read by earlier ones, at the same places."""

from __future__ import annotations

import ast

import pytest

from pallas_lsp.source.newer import parse_module, without_type_parameters
from pallas_lsp.source.syntax import parse

NEWER = """\
type Indexer = int | slice
type Pair[T] = tuple[T, T]; N = 3


class Box[T: (int, str)](Base):
    type Inner = T

    def get[*Ts, **P](self, x: T = [1][0]) -> T:
        type = self.type
        type[0] = x
        return x
"""


def test_type_parameters_and_aliases() -> None:
    older = without_type_parameters(NEWER)
    assert [len(line) for line in older.splitlines()] == [len(line) for line in NEWER.splitlines()]
    tree = parse_module(NEWER)
    assert isinstance(tree.body[0], (ast.Assign, getattr(ast, "TypeAlias", ast.Assign)))
    assert parse(NEWER).text == NEWER
    ast.parse(older)
    assert "type = self.type\n        type[0] = x" in older
    assert "def get          (self, x: T = [1][0]) -> T:" in older


@pytest.mark.parametrize(
    "text", ["def f[\n    T\n](x): pass\n", "def f[T(x): pass\n", "x = (\n", "type = 1\nlist[0] = type\n"]
)
def test_what_cannot_be_blanked_out_stays(text: str) -> None:
    assert without_type_parameters(text) == text


def test_other_errors_stand_where_they_are() -> None:
    with pytest.raises(SyntaxError) as caught:
        parse_module("class Box[T]: pass\nx = = 1\n")
    assert caught.value.lineno == 2
