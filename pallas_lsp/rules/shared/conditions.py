"""Python conditions and branches as jax can trace them: ``&``, ``jnp.where``, ``@pl.when``."""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Sequence

from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS, Syntax

PALLAS = ("jax.experimental.pallas", "pl")
NUMPY = ("jax.numpy", "jnp")
_INVERTED: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
}
_PURE = frozenset({"jax.experimental.pallas.program_id", "jax.experimental.pallas.num_programs", "jax.lax.axis_index"})


def traced(editor: Editor, node: ast.expr) -> str:
    """A condition without Python's ``and``, ``or``, ``not`` and chained comparisons."""
    syntax = editor.syntax
    if isinstance(node, ast.BoolOp):
        operator = " & " if isinstance(node.op, ast.And) else " | "
        return operator.join(f"({traced(editor, value)})" for value in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return inverted(editor, node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        sides = [node.left, *node.comparators]
        parts = []
        for left, right in itertools.pairwise(sides):
            start, end = syntax.span(left)[0], syntax.span(right)[1]
            parts.append(f"({syntax.text[start:end]})")
        return " & ".join(parts)
    return syntax.source(node)


def inverted(editor: Editor, node: ast.expr) -> str:
    """The opposite of a condition."""
    syntax = editor.syntax
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return traced(editor, node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _INVERTED:
        left, right = syntax.source(node.left), syntax.source(node.comparators[0])
        return f"{left} {_INVERTED[type(node.ops[0])]} {right}"
    function = editor.spell("jax.numpy.logical_not", node, NUMPY) or "jnp.logical_not"
    return f"{function}({traced(editor, node)})"


def is_pure(syntax: Syntax, node: ast.expr) -> bool:
    """Whether a condition gives the same when it is evaluated again after a branch has run."""
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript | ast.NamedExpr | ast.Await):
            return False
        if isinstance(part, ast.Call) and syntax.dotted(part.func) not in _PURE:
            return False
    return True


def leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether a block may leave its function or loop, which a traced branch cannot."""
    stack: list[ast.AST] = list(block)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Yield | ast.YieldFrom | ast.Raise):
            return True
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return False


def assigned(block: Sequence[ast.stmt]) -> set[str]:
    """The names that a block binds."""
    found: set[str] = set()
    stack: list[ast.AST] = list(block)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        stack.extend(ast.iter_child_nodes(node))
    return found


def read_after(syntax: Syntax, statement: ast.stmt, names: set[str]) -> set[str]:
    """Those of some names that the function reads after a statement."""
    function = syntax.function(statement)
    scope: ast.AST = function if function is not None else syntax.tree
    end = syntax.span(statement)[1]
    return {
        node.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id in names
        and syntax.span(node)[0] >= end
    }


def block_text(syntax: Syntax, block: Sequence[ast.stmt], indentation: str) -> str:
    """The lines of a block with another indentation, comments between its statements included."""
    first, last = block[0], block[-1]
    decorators = getattr(first, "decorator_list", [])
    start = syntax.span(decorators[0])[0] - 1 if decorators else syntax.span(first)[0]
    end = syntax.span(last)[1]
    line_start = syntax.lines.line_start(start)
    if syntax.text[line_start:start].strip():
        # The block stands on the line of its ``if``.
        return indentation + syntax.text[start:end]
    text = syntax.text[_comments_before(syntax, line_start) : syntax.lines.line_end(end)]
    return textwrap.indent(textwrap.dedent(text.replace("\r\n", "\n")), indentation)


def _comments_before(syntax: Syntax, line_start: int) -> int:
    """Where the comment lines right before a line begin."""
    while line_start > 0:
        before = syntax.lines.line_start(line_start - 1)
        if not syntax.text[before:line_start].lstrip().startswith("#"):
            break
        line_start = before
    return line_start


def replace_statement(editor: Editor, statement: ast.stmt, text: str) -> None:
    """Put another text in the place of a statement, whose trailing comment ``text`` has already."""
    syntax = editor.syntax
    start, end = syntax.span(statement)
    line_end = syntax.lines.line_end(end)
    if syntax.text[end:line_end].strip().startswith("#") and syntax.text[end:line_end].strip() in text:
        end = line_end
    editor.change(start, end, text.replace("\n", syntax.lines.newline))


def when_text(editor: Editor, statement: ast.If, indentation: str, step: str) -> str | None:
    """An ``if`` with its branches as ``@pl.when`` functions; None where a branch cannot become one.

    The text starts without indentation, at the place of the ``if``.
    """
    syntax = editor.syntax
    when = editor.spell("jax.experimental.pallas.when", statement, PALLAS)
    if when is None:
        return None
    lines: list[str] = []
    condition, opposite = traced(editor, statement.test), inverted(editor, statement.test)
    if statement.orelse and not is_pure(syntax, statement.test):
        lines.append(f"{indentation}condition = {condition}")
        function = editor.spell("jax.numpy.logical_not", statement, NUMPY) or "jnp.logical_not"
        condition, opposite = "condition", f"{function}(condition)"
    branches: list[tuple[str, Sequence[ast.stmt]]] = [(condition, statement.body)]
    if statement.orelse:
        branches.append((opposite, statement.orelse))
    for test, block in branches:
        names = assigned(block)
        if leaves(block) or read_after(syntax, statement, names):
            return None
        lines += [f"{indentation}@{when}({test})", f"{indentation}def _():"]
        inner = block[0]
        if len(block) == 1 and isinstance(inner, ast.If):
            nested = when_text(editor, inner, indentation + step, step)
            if nested is None:
                return None
            lines.append(indentation + step + nested)
        else:
            lines.append(block_text(syntax, block, indentation + step))
        lines.append("")
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)[len(indentation) :]


def where_text(editor: Editor, statement: ast.If) -> str | None:
    """An ``if`` whose branches only give names a value, as ``name = jnp.where(...)``."""
    function = editor.spell("jax.numpy.where", statement, NUMPY)
    given = [_simple(block) for block in (statement.body, statement.orelse)]
    if function is None or given[0] is None or given[1] is None or not given[0]:
        return None
    if statement.orelse and set(given[0]) != set(given[1]):
        return None
    condition = traced(editor, statement.test)
    source = editor.syntax.source
    lines = []
    for name, value in given[0].items():
        other = source(given[1][name]) if statement.orelse else name
        lines.append(f"{name} = {function}({condition}, {source(value)}, {other})")
    return "\n".join(lines)


def _simple(block: Sequence[ast.stmt]) -> dict[str, ast.expr] | None:
    found: dict[str, ast.expr] = {}
    for statement in block:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name) or target.id in found:
            return None
        found[target.id] = statement.value
    return found
