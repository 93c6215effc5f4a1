"""A fix that moves a scratch type of a launch into a scope inside the kernel's body."""

from __future__ import annotations

import ast
import tokenize

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.accumulators import unique_name
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.uses import PALLAS
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
    scoped = edits.spell(f"{PALLAS[0]}.run_scoped", function.body[0], PALLAS)
    if name is None or scoped is None:
        return None
    statements = function.body
    docstring = statements[0]
    if isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant) and len(statements) > 1:
        statements = statements[1:]
    if any(isinstance(node, ast.Return) and node.value is not None for node in syntax.own_nodes(function)):
        return None
    _indented(edits, statements)
    line = syntax.lines[syntax.range(statements[0]).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    inner = unique_name(syntax, function.body[0], "scope")
    start = syntax.lines.line_start(syntax.span(statements[0])[0])
    newline = syntax.lines.newline
    edits.insert(start, f"{indent}def {inner}({name}):{newline}")
    end = syntax.lines.line_end(syntax.span(statements[-1])[1])
    edits.insert(end, f"{newline}{newline}{indent}{scoped}({inner}, {scratch.source})")
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


def _indented(edits: Editor, statements: list[ast.stmt]) -> None:
    """Indent statements by four more blanks; lines inside strings stay."""
    syntax = edits.syntax
    first = syntax.range(statements[0]).start.line
    for decorated in statements[:1]:
        decorators = getattr(decorated, "decorator_list", [])
        first = min([first, *(syntax.range(d).start.line for d in decorators)])
    last = syntax.range(statements[-1]).end.line
    inside: set[int] = set()
    for token in syntax.tokens:
        if token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith("FSTRING"):
            begin, end = syntax.lines.position(token.start).line, syntax.lines.position(token.end).line
            inside.update(range(begin + 1, end + 1))
    for number in range(first, last + 1):
        if number not in inside and syntax.lines[number].strip():
            edits.insert(syntax.lines.offset(syntax.lines.line_range(number).start), "    ")
