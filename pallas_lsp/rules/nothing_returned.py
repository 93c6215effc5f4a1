"""
## What it does
Finds values that are None, because the function that should give them returns nothing: the body of `pl.run_scoped`, of
a loop or of a branch, or a helper of the kernel.

## Why it is wrong
`pl.run_scoped(body, ...)` gives what `body` returns. Without a `return` that is None, which can be neither stored nor
computed with. (`pl.run_state` is different: it gives the final values of its refs, whatever its body returns.)

## Example
```python
def body(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)

o_ref[...] = pl.run_scoped(body, plgpu.ACC((64, 128)))
```

## Use instead
```python
def body(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref[...]

o_ref[...] = pl.run_scoped(body, plgpu.ACC((64, 128)))
```

## Fix safety
Where a scope has one ref, the fix returns its value; it is a suggestion.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Python's and jax's own errors for None where an array is needed.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import head_location, positional
from pallas_lsp.rules.shared.places import Spot, follow
from pallas_lsp.rules.shared.user_line import line_of, operands, stored_value
from pallas_lsp.rules.shared.uses import Use, scoped_use
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches",)
SPECIFICITY = 54


def judge(fault: Fault, context: Context) -> Finding | None:
    line = line_of(fault, context) if "NoneType" in fault.message else None
    if line is None:
        return None
    stored = stored_value(line)
    candidates = [stored] if stored is not None else [line.node, *operands(line.node)]
    for each in candidates:
        spot, _ = follow(context, line.frames, line.spot(each), ())
        found = _empty(spot)
        if found is None:
            continue
        function, use = found
        message = f"`{short(line.syntax.source(each), 50)}` is None: `{function.name}` returns nothing"
        message += ", and a scope gives what its body returns." if use is not None else "."
        related = [Related(head_location(spot.path, spot.syntax, function), "Nothing is returned by this.")]
        return finding(__name__, fault, context, line.at(each), message, related, [_returned(spot, function, use)])
    return None


def _empty(spot: Spot) -> tuple[ast.FunctionDef, Use | None] | None:
    """The function without a returned value that an expression runs."""
    syntax, value = spot.syntax, spot.syntax.value(spot.node)
    use: Use | None = None
    function: Function | None = None
    if isinstance(value, ast.FunctionDef):
        # A decorator that runs the function leaves its result under the name.
        use = next(filter(None, (scoped_use(spot.at(each)) for each in value.decorator_list)), None)
        function = value if use is not None else None
    elif isinstance(value, ast.Call):
        use = scoped_use(spot.at(value))
        function = use.function if use is not None else syntax.callee(value.func)
    if not isinstance(function, ast.FunctionDef) or any(each.value is not None for each in syntax.returns(function)):
        return None
    return function, use


def _returned(spot: Spot, function: ast.FunctionDef, use: Use | None) -> Fix | None:
    """Return the value of the one ref of a scope."""
    parameters = positional(function)
    if use is None or len(parameters) != 1 or spot.syntax.returns(function):
        return None
    editor = Editor(spot.path, spot.syntax)
    value = f"{parameters[0].arg}[...]"
    editor.add_after(function.body[-1], f"return {value}")
    return suggested(f"Return `{value}`", editor)
