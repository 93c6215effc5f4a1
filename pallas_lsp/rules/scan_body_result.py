"""
## What it does
Finds bodies of `jax.lax.scan` that return something else than a pair.

## Why it is wrong
The body of a scan returns two things: what it carries to the next step, and what it puts out at this one. In a kernel
nothing can be put out, so the second is `None`; `jax.lax.fori_loop` has a body that returns the carried value alone.

## Example
```python
total, _ = jax.lax.scan(lambda total, _: total + x_ref[0], start, None, length=4)
```

## Use instead
```python
total, _ = jax.lax.scan(lambda total, _: (total + x_ref[0], None), start, None, length=4)
```

## Fix safety
Returning `None` as the output of each step is safe: nothing was put out before.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`scan` in `jax/_src/lax/control_flow/loops.py`, "scan body output must be a pair".
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.functions import head_location
from pallas_lsp.rules.shared.places import Spot, function_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
_LOOPS = "jax/_src/lax/control_flow/loops.py"
SITES = ((_LOOPS, "scan", "must be a pair"), (_LOOPS, "scan.<locals>._create_jaxpr", "must be a pair"))
_PAIR = "scan body output must be a pair"


def judge(fault: Fault, context: Context) -> Finding | None:
    if _PAIR not in fault.message or not raised_in(fault, _LOOPS, "scan", "_create_jaxpr"):
        return None
    location = context.locate(fault)
    syntax, node = context.syntax(location.path), context.node(location)
    given = syntax.argument(node, 0, "f") if syntax is not None and isinstance(node, ast.Call) else None
    found = (
        function_of(context, Spot(location.path, syntax, given)) if syntax is not None and given is not None else None
    )
    fixes: list[Fix | None] = []
    if found is not None:
        spot, function = found
        results = _results(spot.syntax, function)
        location = head_location(spot.path, spot.syntax, function)
        if len(results) == 1:
            location = spot.at(results[0]).location
        fixes = [_paired(spot.path, spot.syntax, function, results)]
    source = short(context.source(location), 40)
    text = (
        f"`{source}` is all that the body of this scan returns, but it has to return a pair: what it carries on, and "
        "what it puts out at each step, which is `None` in a kernel."
    )
    return finding(__name__, fault, context, location, text, (), fixes)


def _results(syntax: Syntax, function: Function) -> list[ast.expr]:
    if isinstance(function, ast.Lambda):
        return [function.body]
    return [r.value for r in syntax.returns(function) if r.value is not None]


def _paired(path: str, syntax: Syntax, function: Function, results: list[ast.expr]) -> Fix | None:
    if not results or any(isinstance(r, ast.Tuple | ast.Starred) for r in results):
        return None
    editor = Editor(path, syntax)
    for result in results:
        start, end = editor.whole(result)
        editor.insert(start, "(" if isinstance(function, ast.Lambda) else "")
        editor.insert(end, ", None)" if isinstance(function, ast.Lambda) else ", None")
    return safe("Return `None` as the output of each step", editor)
