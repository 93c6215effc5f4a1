from __future__ import annotations

import ast
import textwrap

import pytest

from pallas_lsp.source.syntax import FUNCTIONS, Syntax, parameters, parse


def read(text: str) -> Syntax:
    return parse(textwrap.dedent(text))


def expression(syntax: Syntax, source: str) -> ast.expr:
    """The last expression of a text with this source."""
    found = [n for n in ast.walk(syntax.tree) if isinstance(n, ast.expr) and syntax.source(n) == source]
    return max(found, key=lambda node: (node.lineno, node.col_offset))


# -- places ----------------------------------------------------------------------------------------------------------


def test_the_smallest_node_that_covers_a_range() -> None:
    syntax = read("x = f(a)(b, [c + 1])\n")
    for source, kind in [("f(a)(b, [c + 1])", ast.Call), ("f(a)", ast.Call), ("c + 1", ast.BinOp), ("b", ast.Name)]:
        node = syntax.node_at(syntax.range(expression(syntax, source)))
        assert isinstance(node, kind)
        assert syntax.source(node) == source


def test_decorators_belong_to_their_function() -> None:
    syntax = read("@deco(1)\ndef f():\n    pass\n")
    call = expression(syntax, "deco(1)")
    assert syntax.node_at(syntax.range(call)) is call


def test_statements_and_functions_around_a_node() -> None:
    syntax = read("""
        def outer():
            with a:
                x = lambda y: g(y)
            return x
        """)
    name = expression(syntax, "g")
    assert isinstance(syntax.function(name), ast.Lambda)
    assert isinstance(syntax.statement(name), ast.Assign)
    assert syntax.call(name) is expression(syntax, "g(y)")
    assert isinstance(syntax.statement_at(3), ast.Assign)
    assert isinstance(syntax.statement_at(2), ast.With)


def test_comments_are_no_strings() -> None:
    syntax = read("a = '# no'  # yes\n# alone\n")
    assert syntax.comments == {0: "# yes", 1: "# alone"}


def test_a_byte_order_mark() -> None:
    syntax = parse("\ufeffa = f(1)  # c\n")
    assert syntax.source(expression(syntax, "f(1)")) == "f(1)"
    assert [t.string for t in syntax.tokens_in(0, 10)] == ["a", "=", "f", "(", "1", ")"]


def test_what_is_no_python_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        parse("def f(:")
    with pytest.raises((SyntaxError, ValueError)):
        parse("a\0b")
    with pytest.raises(SyntaxError):
        parse("(" * 300 + ")" * 300)


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "written"),
    [
        ("from jax.experimental import pallas as pl", "pl.run_state"),
        ("import jax.experimental.pallas as p", "p.run_state"),
        ("import jax.experimental.pallas", "jax.experimental.pallas.run_state"),
        ("import jax\nimport jax.experimental.pallas", "jax.experimental.pallas.run_state"),
        ("from jax.experimental.pallas import run_state", "run_state"),
        ("from jax.experimental.pallas import run_state as rs", "rs"),
        ("from jax.experimental import pallas\nrun = pallas.run_state", "run"),
        ("from jax.experimental import pallas as pl\nq = pl\nrs = q.run_state", "rs"),
        ("from jax import experimental as e", "e.pallas.run_state"),
    ],
)
def test_canonical_names(imports: str, written: str) -> None:
    syntax = parse(f"{imports}\n\ndef f():\n    def g():\n        {written}(1)\n")
    assert syntax.dotted(expression(syntax, written)) == "jax.experimental.pallas.run_state"


def test_names_of_the_file_itself_and_relative_imports() -> None:
    syntax = read("""
        from . import helpers
        from ..lib.tiles import make
        def own(): ...
        helpers.f; make; own; unknown.g
        """)
    assert syntax.dotted(expression(syntax, "helpers.f")) == ".helpers.f"
    assert syntax.dotted(expression(syntax, "make")) == "..lib.tiles.make"
    assert syntax.dotted(expression(syntax, "own")) == "own"
    assert syntax.dotted(expression(syntax, "unknown.g")) == "unknown.g"


def test_a_shadowed_name_is_another_name() -> None:
    syntax = read("""
        from jax.experimental import pallas as pl
        def f(pl):
            return pl.run_state
        def g():
            return pl.run_state
        """)
    first, second = (n for n in ast.walk(syntax.tree) if isinstance(n, ast.Attribute))
    assert syntax.dotted(first) == "pl.run_state"
    assert syntax.dotted(second) == "jax.experimental.pallas.run_state"


def test_an_ambiguous_name_is_no_name() -> None:
    syntax = read("""
        try:
            from a import f
        except ImportError:
            from b import f
        f
        """)
    assert syntax.dotted(expression(syntax, "f")) is None


def test_the_last_assignment_before_a_use_counts() -> None:
    syntax = read("""
        def k():
            def body(): return 1
            run(body)
            def body(): return 2
            run(body)
        """)
    calls = [n for n in ast.walk(syntax.tree) if isinstance(n, ast.Call)]
    found = [syntax.callee(call.args[0]) for call in calls]
    assert [f.body[0].value.value for f in found] == [1, 2]  # type: ignore[union-attr, index]


def test_assignments_that_go_round_in_circles_end() -> None:
    syntax = read("a = b\nb = a\na\n")
    assert syntax.dotted(expression(syntax, "a")) is None
    syntax.value(expression(syntax, "a"))


def test_class_bodies_are_not_seen_from_their_methods() -> None:
    syntax = read("""
        import real as x
        class C:
            import other as x
            y = x.f
            def m(self):
                return x.g
        """)
    assert syntax.dotted(expression(syntax, "x.f")) == "other.f"
    assert syntax.dotted(expression(syntax, "x.g")) == "real.g"


def test_comprehensions_walrus_and_unpacking() -> None:
    syntax = read("""
        a, b = one, two
        c = [(d := three) for e in items]
        use(a, b, d, e)
        """)
    values = [syntax.value(arg) for arg in expression(syntax, "use(a, b, d, e)").args]  # type: ignore[attr-defined]
    assert [syntax.source(v) for v in values] == ["one", "two", "three", "e"]


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ("import jax.numpy as jnp", "jnp.zeros"),
        ("import jax", "jax.numpy.zeros"),
        ("import jax\nimport jax.numpy as jnp", "jnp.zeros"),
        ("from jax.numpy import zeros as z", "z"),
        ("import numpy as jnp", None),
    ],
)
def test_how_a_name_can_be_written(imports: str, expected: str | None) -> None:
    syntax = parse(f"{imports}\ndef f():\n    here\n")
    assert syntax.spelled("jax.numpy.zeros", expression(syntax, "here")) == expected


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ("from jax.experimental import pallas as pl", None),
        ("import jax.experimental.pallas", None),
        ("from jax.experimental.pallas import triton", "triton.load"),
        ("import jax.experimental.pallas.triton", "jax.experimental.pallas.triton.load"),
        ("from jax.experimental import pallas as pl\nimport jax.experimental.pallas.triton as plt", "plt.load"),
    ],
)
def test_a_backend_that_is_not_imported_cannot_be_written(imports: str, expected: str | None) -> None:
    syntax = parse(f"{imports}\ndef f():\n    here\n")
    assert syntax.spelled("jax.experimental.pallas.triton.load", expression(syntax, "here")) == expected


def test_a_shadowed_import_cannot_be_written() -> None:
    syntax = parse("import jax.numpy as jnp\ndef f(jnp):\n    here\n")
    assert syntax.spelled("jax.numpy.zeros", expression(syntax, "here")) is None


# -- functions and calls ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "def target(x): ...\nuse(target)",
        "target = lambda x: x\nuse(target)",
        "use(lambda x: x)",
        "import functools\ndef target(a, x): ...\nuse(functools.partial(target, 1))",
        "from functools import partial\ndef target(a, x): ...\np = partial(target, 1)\nq = p\nuse(q)",
        "import functools as ft\ndef f(a, b, x): ...\ng = ft.partial(f, 1)\nuse(ft.partial(g, 2))",
    ],
)
def test_the_function_that_a_name_refers_to(text: str) -> None:
    syntax = parse(text)
    call = next(n for n in ast.walk(syntax.tree) if isinstance(n, ast.Call) and syntax.dotted(n.func) == "use")
    found = syntax.callee(call.args[0])
    assert isinstance(found, FUNCTIONS)
    assert parameters(found)[-1].arg == "x"


def test_arguments_through_literals_and_partial() -> None:
    syntax = read("""
        import functools
        types = [a, b]
        options = dict(k=c)
        f = functools.partial(g, first, named=d)
        f(second, *types, **options, **{"m": e})
        """)
    call = expression(syntax, 'f(second, *types, **options, **{"m": e})')
    assert isinstance(call, ast.Call)
    given = syntax.arguments(call)
    assert [syntax.source(p) for p in given.positional] == ["first", "second", "a", "b"]
    assert {k: syntax.source(v) for k, v in given.keywords.items()} == {"named": "d", "k": "c", "m": "e"}
    assert given.complete
    assert syntax.called(call) == "g"
    found = syntax.argument(call, 1, "m")
    assert found is not None and syntax.source(found) == "e"
    assert syntax.argument(call, 9) is None


def test_arguments_that_cannot_be_known() -> None:
    syntax = read("f(a, *unknown(), b)\n")
    call = expression(syntax, "f(a, *unknown(), b)")
    assert isinstance(call, ast.Call)
    given = syntax.arguments(call)
    assert len(given.positional) == 1 and not given.complete


def test_returns_without_those_of_functions_inside() -> None:
    syntax = read("""
        def f():
            def g():
                return 1
            if x:
                return 2
            return 3
        """)
    function = syntax.tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert [syntax.source(r) for r in syntax.returns(function)] == ["return 2", "return 3"]


def test_uses_of_a_name() -> None:
    syntax = read("""
        def f(acc):
            acc = 1
            def g():
                return acc
            def h(acc):
                return acc
        """)
    function = syntax.tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert [n.lineno for n in syntax.uses(function.args.args[0])] == [3, 5]
