"""Loops in kernels: which one an expression stands in, and a Python loop in place of a traced one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_LOOP = "jax.experimental.pallas.loop"


def loops_around(syntax: Syntax, node: ast.AST) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """Functions around a node that ``@pl.loop(...)`` runs, innermost first, with that decorator."""
    for parent in syntax.ancestors(node):
        if isinstance(parent, ast.FunctionDef):
            for decorator in parent.decorator_list:
                if isinstance(decorator, ast.Call) and syntax.called(decorator) == _LOOP:
                    yield parent, decorator


def unrolled(spot: Spot) -> Fix | None:
    """A fix that makes the ``@pl.loop`` around an expression a Python loop, whose index is a number while tracing."""
    syntax = spot.syntax
    for function, decorator in loops_around(syntax, spot.node):
        arguments = syntax.arguments(decorator)
        bounds = [arguments.get(0, "lower"), arguments.get(1, "upper")]
        step = arguments.get(None, "step")
        parameters = [*function.args.posonlyargs, *function.args.args]
        if len(function.decorator_list) != 1 or len(parameters) != 1 or "init_carry" in arguments.keywords:
            return None
        if any(bound is None for bound in bounds) or any(isinstance(n, ast.Return) for n in syntax.own_nodes(function)):
            return None
        given = [syntax.source(n) for n in (*bounds, step) if n is not None]
        if given[0] == "0" and len(given) == 2:
            given = given[1:]
        start = syntax.text.rfind("@", 0, syntax.span(decorator)[0])
        edits = Editor(spot.path, syntax)
        edits.change(start, _header_end(syntax, function), f"for {parameters[0].arg} in range({', '.join(given)}):")
        return suggested(f"Unroll the loop: `for {parameters[0].arg} in range({', '.join(given)})`", edits)
    return None


def _header_end(syntax: Syntax, function: ast.FunctionDef) -> int:
    """The offset after the colon of a function's header."""
    first = syntax.span(function.body[0])[0]
    colons = [t for t in syntax.tokens_in(syntax.span(function)[0], first) if t.string == ":"]
    return colons[-1].end
