"""Statements put into the body of a ``pl.run_scoped``."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Sequence

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.accumulators import unique_name
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.uses import PALLAS
from pallas_lsp.source.edits import Editor


def scope_around(edits: Editor, statements: Sequence[ast.stmt], parameter: str, allocated: str) -> bool:
    """Make statements, the last of their block, the body of a scope with one ref; False where it cannot be spelt."""
    syntax = edits.syntax
    scoped = edits.spell(f"{PALLAS[0]}.run_scoped", statements[0], PALLAS)
    if scoped is None:
        return False
    _indent(edits, statements)
    line = syntax.lines[syntax.range(statements[0]).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    inner = unique_name(syntax, statements[0], "scope")
    newline = syntax.lines.newline
    edits.insert(_first_line_start(edits, statements[0]), f"{indent}def {inner}({parameter}):{newline}")
    end = syntax.lines.line_end(syntax.span(statements[-1])[1])
    returned = "return " if isinstance(statements[-1], ast.Return) and statements[-1].value is not None else ""
    edits.insert(end, f"{newline}{newline}{indent}{returned}{scoped}({inner}, {allocated})")
    return True


def rest_in_scope(made: Spot, statement: ast.Assign, name: str) -> Fix | None:
    """``name = made`` and what follows it in its function, as the body of a scope that allocates it."""
    syntax = made.syntax
    function = syntax.function(statement)
    if not isinstance(function, ast.FunctionDef) or statement not in function.body:
        return None
    rest = function.body[function.body.index(statement) + 1 :]
    inside = {id(node) for each in rest for node in ast.walk(each)}
    returns = [node for node in syntax.returns(function) if id(node) in inside]
    if not rest or any(node is not rest[-1] and node.value is not None for node in returns):
        return None
    edits = Editor(made.path, syntax)
    if not scope_around(edits, rest, name, made.source):
        return None
    edits.remove_statement(statement, function.body)
    return safe(f"Allocate `{name}` with `pl.run_scoped` for the rest of the function", edits)


def _first_line_start(edits: Editor, statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    start = min(edits.syntax.span(node)[0] for node in (statement, *decorators))
    return edits.syntax.lines.line_start(start)


def _indent(edits: Editor, statements: Sequence[ast.stmt]) -> None:
    """Indent statements by four more blanks; lines inside strings stay."""
    syntax = edits.syntax
    first = syntax.lines.position(_first_line_start(edits, statements[0])).line
    last = syntax.range(statements[-1]).end.line
    inside: set[int] = set()
    for token in syntax.tokens:
        if token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith("FSTRING"):
            begin, end = syntax.lines.position(token.start).line, syntax.lines.position(token.end).line
            inside.update(range(begin + 1, end + 1))
    for number in range(first, last + 1):
        if number not in inside and syntax.lines[number].strip():
            edits.insert(syntax.lines.offset(syntax.lines.line_range(number).start), "    ")
