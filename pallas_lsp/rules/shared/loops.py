"""Python loops over ``range`` as jax can trace them: ``@pl.loop`` and ``jax.lax.fori_loop``."""

from __future__ import annotations

import ast

from pallas_lsp.rules.shared.conditions import PALLAS, assigned, block_text, leaves, read_after
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_LAX = ("jax", "jax")


def loop_text(editor: Editor, statement: ast.For, indentation: str, step: str) -> str | None:
    """A loop over ``range`` with a traced bound; the text starts without indentation."""
    syntax = editor.syntax
    call = statement.iter
    if not isinstance(call, ast.Call) or syntax.dotted(call.func) != "range" or statement.orelse:
        return None
    if not isinstance(statement.target, ast.Name) or leaves(statement.body):
        return None
    bounds = [syntax.source(a) for a in call.args]
    lower, upper = ("0", bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    index = statement.target.id
    if read_after(syntax, statement, {index}):
        return None
    carried = _carried(syntax, statement)
    if not carried:
        loop = editor.spell("jax.experimental.pallas.loop", statement, PALLAS)
        if loop is None:
            return None
        by = f", step={bounds[2]}" if len(bounds) == 3 else ""
        lines = [f"{indentation}@{loop}({lower}, {upper}{by})", f"{indentation}def _({index}):"]
        lines.append(block_text(syntax, statement.body, indentation + step))
        return "\n".join(lines)[len(indentation) :]
    fori = editor.spell("jax.lax.fori_loop", statement, _LAX)
    if fori is None or len(bounds) == 3:
        return None
    name = _free(syntax, statement, ("body", "step", "loop_body"))
    carry = carried[0] if len(carried) == 1 else f"({', '.join(carried)})"
    inner = indentation + step
    if len(carried) == 1:
        head = [f"{indentation}def {name}({index}, {carry}):"]
    else:
        head = [f"{indentation}def {name}({index}, carry):", f"{inner}{', '.join(carried)} = carry"]
    lines = [*head, block_text(syntax, statement.body, inner), f"{inner}return {carry.strip('()')}", ""]
    lines.append(f"{indentation}{', '.join(carried)} = {fori}({lower}, {upper}, {name}, {carry})")
    return "\n".join(lines)[len(indentation) :]


def _carried(syntax: Syntax, statement: ast.For) -> list[str]:
    """The names that a loop's steps hand on: those that it binds and that are read before or after."""
    names = assigned(statement.body)
    after = read_after(syntax, statement, names)
    stored = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    order = {n.id: i for i, n in reversed(list(enumerate(sorted(stored, key=lambda n: (n.lineno, n.col_offset)))))}
    ordered = sorted(names, key=lambda name: (order.get(name, len(order)), name))
    return [name for name in ordered if name in after or _read_first(statement, name)]


def _read_first(statement: ast.For, name: str) -> bool:
    """Whether a step reads a name before it binds it."""
    for each in statement.body:
        nodes = [n for n in ast.walk(each) if isinstance(n, ast.Name) and n.id == name]
        if not nodes:
            continue
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id == name:
            return True
        return any(isinstance(n.ctx, ast.Load) for n in nodes)
    return False


def _free(syntax: Syntax, at: ast.AST, names: tuple[str, ...]) -> str:
    scope = syntax.scope(at)
    return next(
        (n for n in names if scope.lookup(n) is None), f"{names[0]}_{at.lineno if isinstance(at, ast.stmt) else 0}"
    )
