"""A fix that moves a scratch type of a launch into a scope inside the kernel's body."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.scopes import scope_around
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax


def body_in_scope(context: Context, fault: Fault, scratch: Spot) -> Fix | None:
    """The whole body as the body of a ``pl.run_scoped`` that allocates one of the scratch types.

    Only where scratch types and body stand in one file, and the types are a plain list or dict.
    """
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    given = launch.argument("scratch_types", "scratch_shapes") if launch is not None else None
    if launch is None or body is None or given is None or body[0] != scratch.path or given.path != scratch.path:
        return None
    syntax, function = scratch.syntax, body[2]
    if not isinstance(function, ast.FunctionDef):
        return None
    edits = Editor(scratch.path, syntax)
    name = _taken_out(edits, given, scratch, function)
    statements = function.body
    docstring = statements[0]
    if isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant) and len(statements) > 1:
        statements = statements[1:]
    if any(isinstance(node, ast.Return) and node.value is not None for node in syntax.own_nodes(function)):
        return None
    if name is None or not scope_around(edits, statements, name, scratch.source):
        return None
    return suggested("Allocate it in the body with `pl.run_scoped`, for each thread its own", edits)


def _taken_out(edits: Editor, given: Spot, scratch: Spot, function: ast.FunctionDef) -> str | None:
    """Take a scratch type out of the launch, and its parameter out of the body; the parameter's name."""
    syntax = given.syntax
    value = syntax.value(given.node)
    parameters = positional(function)
    if isinstance(value, ast.List | ast.Tuple) and scratch.node in value.elts:
        index = len(value.elts) - value.elts.index(scratch.node)
        if function.args.vararg is not None or function.args.defaults or index > len(parameters):
            return None
        parameter = parameters[-index]
        edits.remove_item(scratch.node, value.elts)
    elif isinstance(value, ast.Call) and syntax.dotted(value.func) == "dict":
        keyword = next((k for k in value.keywords if k.value is scratch.node), None)
        every = [*parameters, *function.args.kwonlyargs]
        found = next((p for p in every if keyword is not None and p.arg == keyword.arg), None)
        if keyword is None or found is None or function.args.defaults or function.args.kw_defaults:
            return None
        parameter = found
        edits.remove_argument(value, keyword)
    else:
        return None
    _remove_parameter(edits, syntax, parameter, parameters)
    return parameter.arg


def _remove_parameter(edits: Editor, syntax: Syntax, parameter: ast.arg, parameters: list[ast.arg]) -> None:
    start, end = syntax.span(parameter)
    index = parameters.index(parameter) if parameter in parameters else 0
    if index > 0:
        edits.delete(syntax.span(parameters[index - 1])[1], end)
    elif len(parameters) > 1:
        edits.delete(start, syntax.span(parameters[1])[0])
    else:
        edits.delete(start, end)
