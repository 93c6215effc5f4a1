"""The statement that gives an accumulator its first value, put before a kernel's first use of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import NUMPY, PALLAS, body_statement, root_name
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_LIKE = {"sum": ("zeros_like", ""), "product": ("ones_like", ""), "max": ("full_like", "-"), "min": ("full_like", "")}
_CALLS = {
    "jax.numpy.maximum": "max",
    "jax.lax.max": "max",
    "jax.numpy.minimum": "min",
    "jax.lax.min": "min",
    "jax.numpy.add": "sum",
    "jax.lax.add": "sum",
    "jax.numpy.multiply": "product",
}


def condition(editor: Editor, at: ast.AST, axes: Sequence[int]) -> str | None:
    """``pl.program_id(2) == 0``; with several axes all of them."""
    function = editor.spell(f"{PALLAS[0]}.program_id", at, PALLAS)
    if function is None:
        return None
    parts = [f"{function}({axis}) == 0" for axis in axes]
    return parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)


def when_of(spot: Spot) -> Spot | None:
    """The condition of the ``pl.when`` that a statement stands under."""
    for parent in spot.syntax.ancestors(spot.node):
        for decorator in getattr(parent, "decorator_list", []):
            if isinstance(decorator, ast.Call) and (spot.syntax.called(decorator) or "").endswith(".when"):
                return spot.at(decorator.args[0]) if len(decorator.args) == 1 and not decorator.keywords else None
    return None


def start_value(fault: Fault, context: Context, store: Spot, axes: Sequence[int] | None) -> Fix | None:
    """``@pl.when(pl.program_id(axis) == 0)`` with a store of zeros, before the statement that accumulates."""
    found = body_statement(fault, context, store)
    kind = accumulates(store)
    name = root_name(store.node)
    if found is None or kind is None or name is None or axes is None:
        return None
    syntax, function, statement = found
    known = syntax.binding(name)
    if known is None or not isinstance(known.node, ast.arg) or known.node not in ast.walk(function.args):
        return None
    editor = Editor(store.path, syntax)
    like, sign = _LIKE[kind]
    start = editor.spell(f"jax.numpy.{like}", statement, NUMPY)
    infinity = editor.spell("jax.numpy.inf", statement, NUMPY) if like == "full_like" else ""
    if start is None or infinity is None:
        return None
    more = f", {sign}{infinity}" if infinity else ""
    text = f"{name.id}[...] = {start}({name.id}{more})"
    if not axes:
        editor.add_before(statement, text)
        return suggested(f"Start with `{text}`", editor)
    when = editor.spell(f"{PALLAS[0]}.when", statement, PALLAS)
    test = condition(editor, statement, axes)
    if when is None or test is None or not _own_line(syntax, statement):
        return None
    line = syntax.lines[syntax.range(statement).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    newline = syntax.lines.newline
    inner = indent + ("\t" if indent.endswith("\t") else "    ")
    editor.add_before(statement, f"@{when}({test}){newline}{indent}def _():{newline}{inner}{text}{newline}")
    return suggested(f"Start with `{text}` where `{test}`", editor)


def zero_and_add(fault: Fault, context: Context, store: Spot, axes: Sequence[int]) -> Editor | None:
    """``o_ref[...] = v`` as ``o_ref[...] += v`` behind a store of zeros in the first step along some axes."""
    found = body_statement(fault, context, store)
    if found is None:
        return None
    syntax, _, statement = found
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if (
        not isinstance(statement, ast.Assign)
        or not isinstance(target, ast.Subscript)
        or not _own_line(syntax, statement)
    ):
        return None
    editor = Editor(store.path, syntax)
    ref, start = root_name(target), editor.spell("jax.numpy.zeros_like", statement, NUMPY)
    when, test = editor.spell(f"{PALLAS[0]}.when", statement, PALLAS), condition(editor, statement, axes)
    if ref is None or start is None or when is None or test is None:
        return None
    line = syntax.lines[syntax.range(statement).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    inner = indent + ("\t" if indent.endswith("\t") else "    ")
    lines = [
        f"@{when}({test})",
        f"{indent}def _():",
        f"{inner}{ref.id}[...] = {start}({ref.id})",
        "",
        f"{indent}{syntax.source(target)} += {syntax.source(statement.value)}",
    ]
    editor.replace(statement, syntax.lines.newline.join(lines))
    return editor


def _own_line(syntax: Syntax, statement: ast.stmt) -> bool:
    start = syntax.span(statement)[0]
    return not syntax.text[syntax.lines.line_start(start) : start].strip() or bool(
        getattr(statement, "decorator_list", [])
    )


def accumulates(store: Spot) -> str | None:
    """How a store changes what a ref holds: ``sum``, ``product``, ``max``, ``min``."""
    statement = store.syntax.statement(store.node)
    if isinstance(statement, ast.AugAssign):
        if isinstance(statement.op, ast.Add | ast.Sub):
            return "sum"
        return "product" if isinstance(statement.op, ast.Mult) else None
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.BinOp):
        if isinstance(value.op, ast.Add | ast.Sub):
            return "sum"
        return "product" if isinstance(value.op, ast.Mult) else None
    if isinstance(value, ast.Call):
        return _CALLS.get(store.syntax.dotted(value.func) or "")
    return None
