from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from pallas_lsp.model import Edit, Position, Range
from pallas_lsp.source.edits import Editor, OverlapError, apply_edits, moved
from pallas_lsp.source.positions import Lines
from pallas_lsp.source.syntax import parse

Change = Callable[[Editor], object]


def edit(text: str, change: Change) -> str:
    editor = Editor("f.py", parse(text))
    change(editor)
    edited = apply_edits(text, editor.edits())
    ast.parse(edited)
    return edited


def call(editor: Editor) -> ast.Call:
    return next(n for n in ast.walk(editor.syntax.tree) if isinstance(n, ast.Call))


def argument(editor: Editor, source: str) -> ast.expr | ast.keyword:
    given = [*call(editor).args, *call(editor).keywords]
    return next(a for a in given if editor.syntax.source(a) == source)


@pytest.mark.parametrize(
    ("text", "remove", "expected"),
    [
        ("f(a, b, c)\n", "b", "f(a, c)\n"),
        ("f(a, b, c)\n", "a", "f(b, c)\n"),
        ("f(a, b, c)\n", "c", "f(a, b)\n"),
        ("f(a, b,)\n", "b", "f(a,)\n"),
        ("f(a)\n", "a", "f()\n"),
        ("f(a, k=b)\n", "k=b", "f(a)\n"),
        ("f(a, (b), c)\n", "b", "f(a, c)\n"),
        ("f(\n    a,\n    b,\n    c,\n)\n", "b", "f(\n    a,\n    c,\n)\n"),
        ("f(\n    a,\n    b,  # why\n    c,\n)\n", "b", "f(\n    a,\n    # why\n    c,\n)\n"),
        ("f(\n    a,  # why\n    b\n)\n", "b", "f(\n    a  # why\n    \n)\n"),
        ("f(a,  # first\n  b)\n", "a", "f(  # first\n  b)\n"),
        ("f(\r\n    a,\r\n    b,\r\n)\r\n", "a", "f(\r\n    b,\r\n)\r\n"),
    ],
)
def test_an_argument_goes_with_its_comma(text: str, remove: str, expected: str) -> None:
    assert edit(text, lambda e: e.remove_argument(call(e), argument(e, remove))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()\n", "f(n=1)\n"),
        ("f(a)\n", "f(a, n=1)\n"),
        ("f(a, k=b)\n", "f(a, k=b, n=1)\n"),
        ("f((a))\n", "f((a), n=1)\n"),
        ("f(\n    a,  # why\n)\n", "f(\n    a,\n    n=1,  # why\n)\n"),
        ("f(g(x)(y))\n", "f(g(x)(y), n=1)\n"),
    ],
)
def test_an_argument_is_added_last(text: str, expected: str) -> None:
    assert edit(text, lambda e: e.insert_argument(call(e), "n=1")) == expected


def test_the_opening_parenthesis_of_a_call() -> None:
    editor = Editor("f.py", parse("(f  # (\n (x))(y)(z(1))\n"))
    outer = call(editor)
    assert editor.syntax.text[editor.call_open(outer) :].startswith("(z(1))")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    a\n    b\n", "def f():\n    a\n"),
        ("def f():\n    a\n    b  # why\n", "def f():\n    a\n    # why\n"),
        ("def f():\n    b\n", "def f():\n    pass\n"),
        ("def f():\n    a; b\n", "def f():\n    a\n"),
        ("def f():\n    a; b;\n", "def f():\n    a;\n"),
        ("def f(): a; b\n", "def f(): a\n"),
        ("def f(): b\n", "def f(): pass\n"),
        ("def f():\n    a\n    b", "def f():\n    a\n"),
    ],
)
def test_a_statement_is_taken_out(text: str, expected: str) -> None:
    def change(editor: Editor) -> None:
        function = editor.syntax.tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        editor.remove_statement(function.body[-1], function.body)

    assert edit(text, change) == expected


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("def f():\n    a  # c\n", "def f():\n    new\n    a  # c\n", "def f():\n    a  # c\n    new\n"),
        ("def f(): a\n", "def f(): new; a\n", "def f(): a; new\n"),
        ('def f():\n    """D."""\n    a\n', 'def f():\n    """D."""\n    new\n    a\n', None),
        ('def f():\n    """D."""\n', 'def f():\n    """D."""\n    new\n', None),
        (
            "def f():\n    @d\n    def g():\n        a\n",
            "def f():\n    new\n    @d\n    def g():\n        a\n",
            "def f():\n    @d\n    def g():\n        a\n    new\n",
        ),
        ("def f():\n\tfor i in x:\n\t\ta\n", None, "def f():\n\tfor i in x:\n\t\ta\n\tnew\n"),
        ("def f():\r\n    a\r\n", "def f():\r\n    new\r\n    a\r\n", "def f():\r\n    a\r\n    new\r\n"),
        ("def f():\n    a", None, "def f():\n    a\n    new"),
    ],
)
def test_a_statement_is_added(text: str, first: str | None, last: str | None) -> None:
    def function(editor: Editor) -> ast.FunctionDef:
        found = editor.syntax.tree.body[0]
        assert isinstance(found, ast.FunctionDef)
        return found

    if first is not None:
        assert edit(text, lambda e: e.add_first(function(e), "new")) == first
    if last is not None:
        assert edit(text, lambda e: e.add_after(function(e).body[-1], "new")) == last


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@d\ndef f(): ...\n", "def f(): ...\n"),
        ("@a\n@d(1)\ndef f(): ...\n", "@a\ndef f(): ...\n"),
        ("    # x\n@d  # why\ndef f(): ...\n", "    # x\n# why\ndef f(): ...\n"),
    ],
)
def test_a_decorator_is_taken_out(text: str, expected: str) -> None:
    def change(editor: Editor) -> None:
        function = editor.syntax.tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        editor.remove_decorator(function.decorator_list[-1])

    assert edit(text, change) == expected


@pytest.mark.parametrize(
    ("imports", "expected", "written"),
    [
        ("import jax.numpy as jnp\n", "import jax.numpy as jnp\n", "jnp.zeros"),
        ("import os\n", "import os\nimport jax.numpy as jnp\n", "jnp.zeros"),
        ("from jax.numpy import ones\n", "from jax.numpy import ones, zeros\n", "zeros"),
        ("from jax.numpy import (\n    ones,\n)\n", "from jax.numpy import (\n    ones, zeros,\n)\n", "zeros"),
        ("import os\njnp = 1\n", "import os\njnp = 1\n", None),
    ],
)
def test_a_name_is_imported_where_it_is_missing(imports: str, expected: str, written: str | None) -> None:
    editor = Editor("f.py", parse(imports + "here\n"))
    here = editor.syntax.tree.body[-1]
    for _ in range(2):
        assert editor.spell("jax.numpy.zeros", here, ("jax.numpy", "jnp")) == written
    assert apply_edits(editor.syntax.text, editor.edits()) == expected + "here\n"


def test_edits_at_one_place_are_one_and_lines_come_last() -> None:
    editor = Editor("f.py", parse("import a\nb\n"))
    editor.insert(8, "\nimport c")
    editor.insert(8, ", d")
    editor.change(8, 9, "\n\n")
    (only,) = editor.edits()
    assert only.new_text == ", d\nimport c\n\n"


def test_edits_may_not_overlap() -> None:
    def at(start: int, end: int) -> Edit:
        return Edit("f.py", Range(Position(0, start), Position(0, end)), "x")

    assert apply_edits("abcd", [at(1, 2), at(2, 3)]) == "axxd"
    with pytest.raises(OverlapError):
        apply_edits("abcd", [at(0, 2), at(1, 3)])


def test_where_a_range_is_afterwards() -> None:
    text = "a\nf(x)\ng(y)\n"
    lines = Lines(text)
    edits = [
        Edit("f.py", Range(Position(0, 0), Position(0, 0)), "new\n"),
        Edit("f.py", Range(Position(1, 2), Position(1, 3)), "longer"),
    ]
    after = apply_edits(text, edits)
    whole = lines.range(2, 6)
    assert Lines(after).slice(moved(text, edits, whole)) == "f(longer)"
    last = lines.range(7, 11)
    assert Lines(after).slice(moved(text, edits, last)) == "g(y)"
    replaced = lines.range(4, 5)
    assert Lines(after).slice(moved(text, edits, replaced)) == "longer"
