"""
## What it does
Finds Python's `if`, `while`, `and`, `or`, `not`, `assert`, `match`, `max`, `min` and `range` on values that a kernel
computes.

## Why it is wrong
Python runs the body of a kernel once, to trace it. What depends on `pl.program_id`, on a ref or on an argument has no
value then, so Python cannot decide on it.

## Example
```python
if pl.program_id(0) == 0:
    o_ref[...] = jnp.zeros_like(o_ref)
for t in range(len_ref[0]):
    acc = acc + x_ref[t]
```

## Use instead
```python
@pl.when(pl.program_id(0) == 0)
def _():
    o_ref[...] = jnp.zeros_like(o_ref)

acc = jax.lax.fori_loop(0, len_ref[0], lambda t, acc: acc + x_ref[t], acc)
```

`jnp.where(condition, a, b)` chooses between values, `&`, `|` and `jnp.logical_not` join conditions, and `jnp.maximum`
and `jnp.minimum` compare.

## Fix safety
The fixes are suggestions: with `jnp.where` both values are computed.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`Tracer.__bool__` and `Tracer.__index__` in `jax/_src/core.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.conditions import (
    NUMPY,
    block_text,
    inverted,
    leaves,
    replace_statement,
    traced,
    when_text,
    where_text,
)
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.loops import loop_text
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import type_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)

_EXCEPTIONS = ("TracerBoolConversionError", "TracerIntegerConversionError", "ConcretizationTypeError", "ValueError")
_COMPARING = {"max": "jax.numpy.maximum", "min": "jax.numpy.minimum"}
_ADVICE = {
    "if": "Use `@pl.when` for branches that store, or `jnp.where` to choose between values.",
    "while": "Use `jax.lax.while_loop`.",
    "choice": "Use `jnp.where(condition, a, b)`.",
    "and": "Join conditions with `&`, `|` and `jnp.logical_not`.",
    "assert": "Use `pl.debug_check`, or check outside of the kernel.",
    "match": "Use `@pl.when` for each case, or `jax.lax.switch`.",
    "max": "Use `jnp.maximum` or `jnp.minimum`.",
    "range": "Use `@pl.loop`, or `jax.lax.fori_loop` where the steps hand values on.",
}


def judge(fault: Fault, context: Context) -> Finding | None:
    if not fault.exception.endswith(_EXCEPTIONS) or fault.capture is None:
        return None
    by_bool = passed_through(fault, "jax/_src/core.py", "__bool__")
    by_index = passed_through(fault, "jax/_src/core.py", "__index__")
    if not by_bool and not by_index:
        return None
    line = line_of(fault, context)
    if line is None:
        return None
    form, node = _form(line)
    if form is None or (by_index and not by_bool and form != "range"):
        return None
    location = line.at(node)
    value = fault.facts.get("value")
    typed = f" ({type_text(value)})" if isinstance(value, Mapping) and value.get("shape") else ""
    what = f"`{short(context.source(location), 50)}`"
    words = {
        "range": f"Python's `range` cannot count to a traced number: a bound of {what}{typed}",
        "max": f"Python's `{_called(node)}` cannot compare traced values: an argument of {what}{typed}",
    }
    message = words.get(form, f"Python cannot decide on a traced value: {what}{typed}")
    message += f" is known only when the kernel runs, not while Python traces it. {_ADVICE[form]}"
    return finding(__name__, fault, context, location, message, (), _fixes(line, form, node))


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else "max"


def _form(line: Line) -> tuple[str | None, ast.expr]:
    """In which construct Python asked for the value, and the expression to mark."""
    node, syntax = line.node, line.syntax
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in _COMPARING and syntax.dotted(node.func) == node.func.id:
            return "max", node
        if node.func.id == "range":
            return "range", node
    statement = line.statement
    if isinstance(statement, ast.If | ast.While) and _within(statement.test, node):
        return "if" if isinstance(statement, ast.If) else "while", statement.test
    if isinstance(statement, ast.Assert) and _within(statement.test, node):
        return "assert", statement.test
    if isinstance(statement, ast.Match):
        return "match", statement.subject
    for parent in (node, *syntax.ancestors(node)):
        if isinstance(parent, ast.IfExp) and _within(parent.test, node):
            return "choice", parent.test
        if isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
            return "and", _outermost(line, parent)
        if isinstance(parent, ast.Compare) and len(parent.ops) > 1:
            return "and", _outermost(line, parent)
        if isinstance(parent, ast.comprehension) and any(_within(test, node) for test in parent.ifs):
            return "if", node
        if isinstance(parent, (*FUNCTIONS, ast.stmt)):
            break
    return None, node


def _within(outer: ast.AST, node: ast.AST) -> bool:
    return any(part is node for part in ast.walk(outer))


def _outermost(line: Line, node: ast.expr) -> ast.expr:
    """The whole condition that a part belongs to."""
    parent = line.syntax.parent(node)
    while isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
        node, parent = parent, line.syntax.parent(parent)
    return node


def _fixes(line: Line, form: str, node: ast.expr) -> Iterator[Fix | None]:
    syntax, statement = line.syntax, line.statement
    editor = Editor(line.path, syntax)
    if form == "max" and isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        function = editor.spell(_COMPARING[_called(node)], node, NUMPY)
        if function is not None:
            editor.replace(node.func, function)
            yield suggested(f"Compare with `{function}`", editor)
    elif form == "choice":
        choice = syntax.around(node, ast.IfExp)
        function = editor.spell("jax.numpy.where", node, NUMPY)
        if choice is not None and function is not None:
            parts = (traced(editor, choice.test), syntax.source(choice.body), syntax.source(choice.orelse))
            editor.change(*editor.whole(choice), f"{function}({', '.join(parts)})")
            yield suggested(f"Choose with `{function}`", editor)
    elif form == "and":
        if isinstance(node, ast.UnaryOp):
            editor.replace(node, inverted(editor, node.operand))
        else:
            editor.replace(node, traced(editor, node))
        yield suggested("Join the conditions with operators that jax traces", editor)
    elif form == "assert" and statement is not None:
        block = _block(line, statement)
        if block is not None:
            editor.remove_statement(statement, block)
            yield suggested("Remove the assertion", editor)
    elif form == "if" and isinstance(statement, ast.If):
        yield from _if_fixes(line, statement)
    elif form == "range" and isinstance(statement, ast.For):
        indentation, step = _indentation(line, statement)
        text = loop_text(editor, statement, indentation, step)
        if text is not None:
            replace_statement(editor, statement, text)
            kind = "`@pl.loop`" if text.startswith("@") else "`jax.lax.fori_loop`"
            yield suggested(f"Make it a traced loop with {kind}", editor)


def _if_fixes(line: Line, statement: ast.If) -> Iterator[Fix | None]:
    syntax = line.syntax
    top = _first_of_chain(line, statement)
    indentation, step = _indentation(line, top)
    early = _early_return(line, top)
    if early is not None:
        yield early
        return
    editor = Editor(line.path, syntax)
    text = where_text(editor, top)
    if text is not None:
        editor.replace(top, text.replace("\n", syntax.lines.newline + indentation))
        yield suggested("Choose the value with `jnp.where`", editor)
    editor = Editor(line.path, syntax)
    text = when_text(editor, top, indentation, step)
    if text is not None:
        replace_statement(editor, top, text)
        yield suggested("Make the branches functions under `@pl.when`", editor)


def _first_of_chain(line: Line, statement: ast.If) -> ast.If:
    """The ``if`` that an ``elif`` belongs to."""
    parent = line.syntax.parent(statement)
    while isinstance(parent, ast.If) and parent.orelse == [statement] and _is_elif(line, statement):
        statement, parent = parent, line.syntax.parent(parent)
    return statement


def _is_elif(line: Line, statement: ast.If) -> bool:
    start = line.syntax.span(statement)[0]
    return line.syntax.text.startswith("elif", start)


def _early_return(line: Line, statement: ast.If) -> Fix | None:
    """``if c: return`` with the rest of the function under ``@pl.when``."""
    returns = [s for s in statement.body if isinstance(s, ast.Return)]
    if len(statement.body) != 1 or not returns or returns[0].value is not None or statement.orelse:
        return None
    block = _block(line, statement)
    if block is None or not isinstance(line.syntax.parent(statement), ast.FunctionDef):
        return None
    rest = block[block.index(statement) + 1 :]
    editor = Editor(line.path, line.syntax)
    when = editor.spell("jax.experimental.pallas.when", statement, ("jax.experimental.pallas", "pl"))
    if not rest or when is None:
        return None
    if leaves(rest):
        return None
    indentation, step = _indentation(line, statement)
    start, end = line.syntax.span(statement)[0], line.syntax.span(rest[-1])[1]
    body = block_text(line.syntax, rest, indentation + step)
    text = f"@{when}({inverted(editor, statement.test)})\n{indentation}def _():\n{body}"
    editor.change(start, line.syntax.lines.line_end(end), text.replace("\n", line.syntax.lines.newline))
    return suggested("Run the rest of the kernel under `@pl.when`", editor)


def _block(line: Line, statement: ast.stmt) -> list[ast.stmt] | None:
    parent = line.syntax.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def _indentation(line: Line, statement: ast.stmt) -> tuple[str, str]:
    """The indentation of a statement, and one step of the file's."""
    text = line.syntax.lines[line.syntax.range(statement).start.line]
    indentation = text[: len(text) - len(text.lstrip())]
    function = line.syntax.function(statement)
    step = "    "
    if isinstance(function, ast.FunctionDef):
        first = function.body[0]
        outer, inner = function.col_offset, first.col_offset
        if first.lineno != function.lineno and inner > outer:
            step = "\t" if indentation.startswith("\t") else " " * (inner - outer)
    return indentation, step
