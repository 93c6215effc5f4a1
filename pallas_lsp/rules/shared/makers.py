"""Calls that make something out of a function of the user's: launches, pipelines and scopes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from pallas_lsp.source.syntax import Syntax

_PALLAS = "jax.experimental.pallas"
LAUNCHES = {
    f"{_PALLAS}.pallas_call": "kernel",
    f"{_PALLAS}.kernel": "body",
    f"{_PALLAS}.mosaic_gpu.kernel": "body",
}
PIPELINES = {
    f"{_PALLAS}.emit_pipeline": "body",
    f"{_PALLAS}.mosaic_gpu.emit_pipeline": "body",
    f"{_PALLAS}.mosaic_gpu.emit_pipeline_warp_specialized": "body",
    f"{_PALLAS}.tpu.emit_pipeline": "body",
}
_STATE = {f"{_PALLAS}.run_state": "f"}
_SCOPES = {f"{_PALLAS}.run_scoped": "f"}
MAKERS = {**LAUNCHES, **PIPELINES, **_STATE}
"""What returns a function that has to be called, each with the parameter that takes the user's function."""
TAKERS = {**MAKERS, **_SCOPES}
"""All that take a function of the user's, and call it themselves."""


@lru_cache(maxsize=64)
def _calls(syntax: Syntax) -> tuple[tuple[ast.Call, str], ...]:
    if "pallas" not in syntax.text:
        return ()
    found = ((node, syntax.called(node)) for node in syntax.nodes if isinstance(node, ast.Call))
    return tuple((call, name) for call, name in found if name in TAKERS)


def taking(syntax: Syntax) -> Iterator[tuple[ast.Call, str, ast.expr]]:
    """(call, name, function given) of each call that takes a function."""
    for call, name in _calls(syntax):
        given = syntax.arguments(call).get(0, TAKERS[name])
        if given is not None:
            yield call, name, given


def making(syntax: Syntax) -> Iterator[ast.Call]:
    """The calls that return a function, which is still to be called."""
    for call, name in _calls(syntax):
        if name in MAKERS:
            yield call


def inside(syntax: Syntax, node: ast.AST, function: ast.AST) -> bool:
    return any(each is function for each in syntax.ancestors(node))


def returned(syntax: Syntax, function: ast.FunctionDef) -> list[ast.expr] | None:
    """What a function returns; None where that cannot be told: generators, coroutines, decorated functions."""
    if function.decorator_list or any(isinstance(n, ast.Yield | ast.YieldFrom) for n in syntax.own_nodes(function)):
        return None
    return [each.value for each in syntax.returns(function) if each.value is not None]


def own_function(syntax: Syntax, node: ast.expr) -> ast.FunctionDef | None:
    found = syntax.value(node)
    return found if isinstance(found, ast.FunctionDef) else None
