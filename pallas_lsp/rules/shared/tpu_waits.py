"""Waiting for a TPU's copies: ``copy.wait()`` after ``copy.start()``."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.accumulators import unique_name
from pallas_lsp.rules.shared.async_order import block_of, own_statement
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor


def wait_after_start(start: Spot) -> Fix | None:
    """The wait for a copy right after it is started; a copy without a name gets one."""
    syntax, call = start.syntax, start.node
    statement = own_statement(start)
    if statement is None or not isinstance(statement, ast.Expr) or statement.value is not call:
        return _async_copy(start)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "start":
        return None
    edits = Editor(start.path, syntax)
    copy = call.func.value
    if isinstance(copy, ast.Name | ast.Attribute | ast.Subscript):
        text = f"{syntax.source(copy)}.wait()"
        block = block_of(syntax, statement)
        for later in block[block.index(statement) :]:
            if isinstance(later, ast.Expr) and syntax.source(later.value) == text:
                edits.remove_statement(later, block)
        edits.add_after(statement, text)
        return safe(f"Wait for the copy: `{text}`", edits)
    name = unique_name(syntax, statement, "copy")
    begin, end = syntax.span(copy)
    line = syntax.lines[syntax.range(statement).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    edits.insert(begin, f"{name} = ")
    rest = syntax.text[end : syntax.span(call)[1]]
    newline = syntax.lines.newline
    own_line = not line[: syntax.range(statement).start.character].strip()
    between = f"{newline}{indent}" if own_line else "; "
    edits.change(end, syntax.span(call)[1], f"{between}{name}{rest.strip()}{between}{name}.wait()")
    return safe(f"Wait for the copy: `{name}.wait()`", edits)


def _async_copy(start: Spot) -> Fix | None:
    """``copy = pltpu.async_copy(...)`` is started already."""
    syntax, call = start.syntax, start.node
    statement = syntax.statement(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(statement, ast.Assign) or statement.value is not call or not isinstance(target, ast.Name):
        return None
    edits = Editor(start.path, syntax)
    edits.add_after(statement, f"{target.id}.wait()")
    return safe(f"Wait for the copy: `{target.id}.wait()`", edits)
