"""
## What it does
Finds bounds of `jax.lax.fori_loop` that are no integers, or integers of different types, and loops that are given their
function before their bounds.

## Why it is wrong
A loop counts in one integer type from its lower to its upper bound. A true division makes a float even where it comes
out even.

## Example
```python
jax.lax.fori_loop(0, n / 8, body, acc)
```

## Use instead
```python
jax.lax.fori_loop(0, n // 8, body, acc)
```

## Fix safety
`//` and `pl.cdiv` are suggestions: one rounds down, the other up. Putting the arguments into their order is safe.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`fori_loop` in `jax/_src/lax/control_flow/loops.py`, "lower and upper arguments to fori_loop must".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.arithmetic import integer_edits
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
SITES = (("jax/_src/lax/control_flow/loops.py", "fori_loop"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    here = raised_in(fault, "jax/_src/lax/control_flow/loops.py", "fori_loop")
    line = line_of(fault, context)
    if not here or line is None or not isinstance(line.node, ast.Call):
        return None
    swapped = _body_first(line, line.node)
    if swapped is not None:
        return finding(__name__, fault, context, *swapped)
    if "arguments to fori_loop" not in fault.message:
        return None
    bounds = [line.syntax.argument(line.node, i, name) for i, name in ((0, "lower"), (1, "upper"))]
    wrong = next((b for b in reversed(bounds) if b is not None and list(integer_edits(line.syntax, b))), None)
    location = line.at(wrong) if wrong is not None else line.at(bounds[1] or line.node)
    what = f"`{short(context.source(location), 40)}`"
    message = f"The bound {what} of this loop is no integer, or of another integer type than the other bound."
    if wrong is not None:
        message = f"The bound {what} of this loop is a float, but a loop counts in integers."
    return finding(__name__, fault, context, location, message, (), _fixes(line, wrong) if wrong is not None else ())


def _body_first(line: Line, call: ast.Call) -> tuple[Location, str, tuple[()], list[Fix | None]] | None:
    """Place, words and fix for a loop that is given its function before its bounds."""
    functions = [i for i, each in enumerate(call.args) if line.syntax.callee(each) is not None]
    if not functions or functions[0] >= 2 or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    body = call.args[functions[0]]
    message = (
        f"`{short(line.syntax.source(body), 40)}` is given as a bound of the loop: `jax.lax.fori_loop` takes the lower "
        "and the upper bound first, then the function, then the start value."
    )
    fixes: list[Fix | None] = []
    if len(call.args) == 4:
        others = [each for each in call.args if each is not body]
        editor = Editor(line.path, line.syntax)
        for place, value in zip(call.args, [*others[:2], body, others[2]], strict=True):
            if place is not value:
                editor.replace(place, line.syntax.source(value))
        fixes.append(safe("Give the bounds first", editor))
    return line.at(body), message, (), fixes


def _fixes(line: Line, wrong: ast.expr) -> Iterator[Fix | None]:
    for title, edits in integer_edits(line.syntax, wrong):
        editor = Editor(line.path, line.syntax)
        for target, text in edits:
            editor.replace(target, text)
        yield suggested(title, editor)
