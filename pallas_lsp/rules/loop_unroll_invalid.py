"""
## What it does
Finds `unroll=` of loops that cannot be unrolled that way: loops whose number of steps is only known when the kernel
runs, and numbers that are no positive integers.

## Why it is wrong
An unrolled loop repeats its body while the kernel is compiled, so its number of steps has to be known then: bounds that
are computed from values of the kernel cannot be. `unroll` counts repetitions of the body: 1 leaves the loop as it is.

## Example
```python
jax.lax.fori_loop(0, count_ref[0], body, init, unroll=4)
```

## Use instead
```python
jax.lax.fori_loop(0, count_ref[0], body, init)
```

## Fix safety
Leaving `unroll` out computes the same (safe).

## Applies to
All backends; jax 0.10, 0.11 and 0.12. On TPU `unroll=0` unrolls completely.

## Source
`fori_loop` and `scan` in `jax/_src/lax/control_flow/loops.py`, "Can only use `unroll` in `fori_loop`";
`_lower_jaxpr_to_for_loop` in `jax/_src/pallas/mosaic_gpu/lowering.py`, which divides by it.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.gpu_operands import LOWERING
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
SPECIFICITY = 55
_LOOPS = "jax/_src/lax/control_flow/loops.py"
SITES = ((_LOOPS, "fori_loop"), (_LOOPS, "scan"), (LOWERING, "_lower_jaxpr_to_for_loop"))


def judge(fault: Fault, context: Context) -> Finding | None:
    bounds = raised_in(fault, _LOOPS, "fori_loop") and "Can only use `unroll`" in fault.message
    number = raised_in(fault, _LOOPS, "scan") and "`unroll` must be" in fault.message
    # Mosaic GPU counts to it and divides by it, whatever it is.
    divided = raised_in(fault, LOWERING, "_lower_jaxpr_to_for_loop", "loop") and fault.exception.rpartition(".")[2] in (
        "ZeroDivisionError",
        "TypeError",
    )
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    if not (bounds or number or divided) or syntax is None or not isinstance(node, ast.Call):
        return None
    keyword = next((k for k in node.keywords if k.arg == "unroll"), None)
    if keyword is None:
        return None
    source = short(syntax.source(keyword.value), 40)
    related = []
    if bounds:
        text = (
            f"`unroll={source}` repeats the body while the kernel is compiled, when the number of steps is not known."
        )
        traced = _traced(syntax, node)
        if traced is not None:
            where = Location(place.path, syntax.range(traced))
            related = [Related(where, "This bound is only known when the kernel runs.")]
    else:
        text = f"`unroll={source}` is no number of repetitions: a positive integer that divides the number of steps."
    location = Location(place.path, syntax.range(keyword.value))
    fixes = [_left_out(Editor(place.path, syntax), node, keyword)]
    return finding(__name__, fault, context, location, text, related, fixes)


def _traced(syntax: Syntax, call: ast.Call) -> ast.expr | None:
    """The bound that is no number in the source."""
    bounds = [syntax.argument(call, i, name) for i, name in ((1, "upper"), (0, "lower"))]
    return next((b for b in bounds if b is not None and not isinstance(syntax.value(b), ast.Constant)), None)


def _left_out(editor: Editor, call: ast.Call, keyword: ast.keyword) -> Fix | None:
    editor.remove_argument(call, keyword)
    return safe("Leave `unroll` out", editor)
