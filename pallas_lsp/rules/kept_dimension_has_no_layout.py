"""
## What it does
Finds reductions with `keepdims=True` in Mosaic GPU kernels.

## Why it is wrong
`jnp.max(x, axis=-1, keepdims=True)` of a (64, 128) value makes a value of shape (64, 1), which is no whole number of
tiles of any tiled layout. Without the kept dimension the result is a vector in the layout of the rows, which
`jax.lax.broadcast_in_dim` spreads over the columns again.

## Example
```python
e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
```

## Use instead
```python
e = jnp.exp(x - jax.lax.broadcast_in_dim(jnp.max(x, axis=-1), x.shape, (0,)))
```

## Fix safety
The fix computes the same values; it is a suggestion because the result has the shape of `x` instead of one column.

## Applies to
Mosaic GPU; jax 0.10 and 0.11, and 0.12 under lane semantics (0.12 infers layouts for it otherwise).

## Source
`Tiling.tile_shape` in `jax/experimental/mosaic/gpu/fragmented_array.py`, "does not apply to shape (64, 1)";
`_broadcast_in_dim_lowering_rule` in `jax/_src/pallas/mosaic_gpu/lowering.py`; layout inference.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_layouts import inferred, keepdims, kept_reductions, reduction_of
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU
from pallas_lsp.rules.shared.gpu_rewrites import first_argument
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("layouts",)
SPECIFICITY = 40
SITES = (
    (f"{MGPU}fragmented_array.py", "Tiling.tile_shape.<locals>.fail"),
    (LOWERING, "_broadcast_in_dim_lowering_rule"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray.reshape"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray.broadcast_in_dim"),
)
_FILES = (f"{MGPU}fragmented_array.py", LOWERING)


def judge(fault: Fault, context: Context) -> Finding | None:
    here = any(fault.site is not None and fault.site.file == file for file in _FILES)
    if not (here and passed_through(fault, LOWERING)) and not inferred(fault):
        return None
    spot = _reduction(fault, context)
    if spot is None or not isinstance(spot.node, ast.Call):
        return None
    source = short(spot.source, 60)
    text = (
        f"`{source}` keeps a dimension of size 1, and a value of that shape is no whole number of tiles of any layout "
        "of registers. Reduce without `keepdims`, and spread the result with `jax.lax.broadcast_in_dim`."
    )
    return finding(__name__, fault, context, spot.location, text, (), [_fix(fault, context, spot)])


def _reduction(fault: Fault, context: Context) -> Spot | None:
    """The reduction with a kept dimension at the place of the fault; for a kernel as a whole, its first one."""
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    if syntax is None or node is None:
        return None
    call = reduction_of(syntax, node)
    if call is not None and keepdims(call) is not None:
        return Spot(place.path, syntax, call)
    inside = [n for n in ast.walk(node) if isinstance(n, ast.Call) and reduction_of(syntax, n) is n and keepdims(n)]
    if len(inside) == 1 and not isinstance(node, ast.Call):
        return Spot(place.path, syntax, inside[0])
    if not inferred(fault):
        return None
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if body is None or fault.facts.get("conflict"):
        return None
    found = next(kept_reductions(body[1], body[2]), None)
    return Spot(body[0], body[1], found) if found is not None else None


def _fix(fault: Fault, context: Context, spot: Spot) -> Fix | None:
    """Every such reduction of the kernel without the kept dimension, and its result spread again."""
    syntax = spot.syntax
    function = syntax.function(spot.node)
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if body is not None and body[0] == spot.path:
        function = body[2]
    if function is None:
        return None
    edits = Editor(spot.path, syntax)
    spread = edits.spell("jax.lax.broadcast_in_dim", spot.node, ("jax.lax", "lax"))
    if spread is None:
        return None
    for call in kept_reductions(syntax, function):
        operand = first_argument(spot.at(call))
        axis = _axis(syntax.arguments(call).get(1, "axis"))
        keyword = keepdims(call)
        if not isinstance(operand, ast.Name) or axis is None or keyword is None:
            if call is spot.node:
                return None
            continue
        start, end = syntax.span(call)
        edits.insert(start, f"{spread}(")
        edits.remove_argument(call, keyword)
        edits.insert(end, f", {operand.id}.shape, ({0 if axis in (1, -1) else 1},))")
    return suggested("Reduce without `keepdims` and spread the result over the value's shape", edits)


def _axis(node: ast.expr | None) -> int | None:
    """The axis of a reduction of a matrix."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value in (0, 1):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return {1: -1, 2: 0}.get(node.operand.value) if isinstance(node.operand.value, int) else None
    return None
