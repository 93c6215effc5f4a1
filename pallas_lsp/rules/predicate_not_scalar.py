"""
## What it does
Finds conditions of `@pl.when`, `jax.lax.cond`, `jax.lax.while_loop` and `if` that hold one truth value for each
element of an array.

## Why it is wrong
A branch is taken or not, as a whole, so its condition is one truth value. `jnp.where` chooses for each element.

## Example
```python
@pl.when(x > 0)
def _():
    o_ref[...] = jnp.log(x)
```

## Use instead
```python
o_ref[...] = jnp.where(x > 0, jnp.log(x), o_ref[...])
```

## Fix safety
The fixes are suggestions: `jnp.where` computes both values for all elements, `jnp.any` and `jnp.all` make one truth
value.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`cond` in `jax/_src/lax/control_flow/conditionals.py`, "Pred must be a scalar"; `while_loop` in `loops.py`, "cond_fun
must return a boolean scalar"; `check_bool_conversion` in `jax/_src/core.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import shape_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
SPECIFICITY = 60
SITES = (
    ("jax/_src/lax/control_flow/conditionals.py", "cond"),
    ("jax/_src/core.py", "check_bool_conversion"),
)

_CONDITIONALS = "jax/_src/lax/control_flow/conditionals.py"
_LOOPS = "jax/_src/lax/control_flow/loops.py"
_NUMPY = ("jax.numpy", "jnp")
_WHEN = "jax.experimental.pallas.when"
_CONDS = frozenset({"jax.lax.cond", "jax.lax.switch"})


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.capture is None:
        return None
    by_cond = raised_in(fault, _CONDITIONALS, "cond", "switch") and "scalar" in fault.message
    by_while = passed_through(fault, _LOOPS, "while_loop") and "boolean scalar" in fault.message
    by_if = raised_in(fault, "jax/_src/core.py", "check_bool_conversion")
    line = line_of(fault, context)
    if line is None or not (by_cond or by_while or by_if):
        return None
    value = fault.facts.get("value")
    shape = value.get("shape") if isinstance(value, Mapping) else None
    if by_if and not shape:
        return None
    predicate = _predicate(line, by_while)
    location = line.at(predicate)
    described = f" has the shape {shape_text(shape)}" if shape else " is not one truth value"
    message = (
        f"The condition `{short(context.source(location), 50)}`{described}, but a branch is taken or not as a whole: "
        "its condition must be a scalar. Choose for each element with `jnp.where`."
    )
    if by_while:
        message = (
            "The condition of `jax.lax.while_loop` must return one truth value, a boolean scalar, for the loop as a "
            "whole."
        )
    return finding(__name__, fault, context, location, message, (), _fixes(line, predicate, by_while))


def _predicate(line: Line, by_while: bool) -> ast.expr:
    node = line.node
    if by_while and isinstance(node, ast.Call):
        given = line.syntax.argument(node, 0, "cond_fun")
        function = line.syntax.callee(given) if given is not None else None
        if isinstance(function, ast.Lambda):
            return function.body
        return given if given is not None else node
    if isinstance(node, ast.Call):
        name = line.syntax.dotted(node.func)
        if name == _WHEN or name in _CONDS:
            return line.syntax.argument(node, 0, "pred") or line.syntax.argument(node, 0, "condition") or node
    statement = line.statement
    if isinstance(statement, ast.If | ast.While) and any(part is node for part in ast.walk(statement.test)):
        return statement.test
    return node


def _fixes(line: Line, predicate: ast.expr, by_while: bool) -> Iterator[Fix | None]:
    if not by_while:
        yield _where(line, predicate)
    syntax = line.syntax
    for name, meaning in (("any", "where any element asks for it"), ("all", "where all elements ask for it")):
        editor = Editor(line.path, syntax)
        function = editor.spell(f"jax.numpy.{name}", predicate, _NUMPY)
        if function is None or isinstance(line.statement, ast.If | ast.While):
            continue
        editor.replace(predicate, f"{function}({syntax.source(predicate)})")
        yield suggested(f"{'Go on' if by_while else 'Take the branch'} {meaning}: `{function}`", editor)


def _where(line: Line, predicate: ast.expr) -> Fix | None:
    """The stores of a branch, or the values of two lambdas, chosen by ``jnp.where``."""
    syntax, node = line.syntax, line.node
    editor = Editor(line.path, syntax)
    where = editor.spell("jax.numpy.where", predicate, _NUMPY)
    if where is None:
        return None
    condition = syntax.source(predicate)
    if isinstance(node, ast.Call) and syntax.dotted(node.func) in _CONDS:
        branches = [syntax.argument(node, 1, "true_fun"), syntax.argument(node, 2, "false_fun")]
        bodies = [b.body for b in branches if isinstance(b, ast.Lambda) and not b.args.args]
        if len(bodies) != 2 or len(node.args) > 3:
            return None
        editor.replace(node, f"{where}({condition}, {syntax.source(bodies[0])}, {syntax.source(bodies[1])})")
        return suggested("Choose for each element with `jnp.where`", editor)
    function = syntax.parent(predicate)
    while function is not None and not isinstance(function, ast.stmt):
        function = syntax.parent(function)
    if isinstance(function, ast.FunctionDef) and len(function.decorator_list) == 1:
        block = function.body
        start = syntax.text.rindex("@", 0, syntax.span(function.decorator_list[0])[0])
    elif isinstance(function, ast.If) and not function.orelse:
        block, start = function.body, syntax.span(function)[0]
    else:
        return None
    lines = []
    for statement in block:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Subscript):
            return None
        stored = syntax.source(target)
        lines.append(f"{stored} = {where}({condition}, {syntax.source(statement.value)}, {stored})")
    line_start = syntax.lines.line_start(start)
    indentation = syntax.text[line_start:start]
    editor.change(start, syntax.span(function)[1], f"{syntax.lines.newline}{indentation}".join(lines))
    return suggested("Choose for each element with `jnp.where`", editor)
