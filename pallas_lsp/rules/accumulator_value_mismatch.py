"""
## What it does
Finds values that are stored into a WGMMA accumulator, or that one starts at, and do not fit it: another shape,
another element type, or (before jax 0.11) a layout that accumulators do not have.

## Why it is wrong
`acc_ref[...] = value` replaces the registers of the accumulator. The value has to have its shape and element type;
there is no broadcasting and no conversion. Its elements have to be spread over the threads as wgmma spreads them
(`plgpu.Layout.WGMMA`); from jax 0.11 on that is inferred, before it has to be written.

## Example
```python
acc_ref[...] = jnp.zeros((64, 128), jnp.float16)   # the accumulator is float32
```

## Use instead
```python
acc_ref[...] = jnp.zeros((64, 128), jnp.float32)
```

## Fix safety
A conversion or a layout cast is a suggestion, although in most kernels it is what is meant.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`_wgmma_accumulator_store_abstract_eval` in `jax/_src/pallas/mosaic_gpu/primitives.py`;
`WGMMAAccumulator.from_registers` in `jax/experimental/mosaic/gpu/wgmma.py`, "Only WGMMA layouts supported in
WGMMAAccumulator".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.accumulators import cast, initialiser, start_value
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import dtype_text
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, Operand, operands, shape_text
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators", "element types")
SITES = (
    (PRIMITIVES, "_wgmma_accumulator_store_abstract_eval"),
    (PRIMITIVES, "wgmma_accumulator_store"),
    (f"{MGPU}wgmma.py", "WGMMAAccumulator.from_registers"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    layout = raised_in(fault, f"{MGPU}wgmma.py", "from_registers")
    if not layout and not raised_in(fault, PRIMITIVES, "_wgmma_accumulator_store_abstract_eval"):
        return None
    value = _value(context, fault)
    place = value.location if value is not None else context.locate(fault)
    source = short(context.source(place), 50)
    if layout:
        text = (
            f"`{source}` is spread over the threads in another way than an accumulator is: it has to have the layout "
            "`plgpu.Layout.WGMMA` (jax 0.11 and later infer it)."
        )
        return finding(__name__, fault, context, place, text, (), [_cast(value)])
    found = operands(fault)
    acc = next((o for o in found.values() if o.space == "regs"), None)
    given = next((o for o in found.values() if o.space == "value"), None)
    if acc is None or given is None or acc.shape is None:
        return None
    related = acc.related(context, f"The accumulator is allocated here, as {acc.type}.")
    if acc.shape != given.shape:
        text = (
            f"`{source}` has the shape {shape_text(given.shape)}, but the accumulator is {shape_text(acc.shape)}: a "
            "store into an accumulator replaces all of it."
        )
    else:
        text = f"`{source}` is {given.dtype}, but the accumulator is {acc.dtype}: a store does not convert."
    return finding(__name__, fault, context, place, text, related, _fixes(context, value, acc, given))


def _value(context: Context, fault: Fault) -> Spot | None:
    """The value that is stored, or that an accumulator starts at."""
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    if syntax is None or node is None:
        return None
    statement = syntax.statement(node)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return Spot(place.path, syntax, statement.value)
    for inner in ast.walk(node):
        init = initialiser(syntax, inner)
        given = start_value(syntax, init) if init is not None else None
        if given is not None:
            return Spot(place.path, syntax, given)
    return None


def _cast(value: Spot | None) -> Fix | None:
    if value is None:
        return None
    edits = Editor(value.path, value.syntax)
    parts = cast(edits, value.node)
    if parts is None:
        return None
    edits.replace(value.node, f"{parts[0]}{value.source}{parts[1]}")
    return suggested("Cast the value to the layout of an accumulator", edits)


def _fixes(context: Context, value: Spot | None, acc: Operand, given: Operand) -> Iterator[Fix | None]:
    if value is None:
        return
    edits = Editor(value.path, value.syntax)
    # Layouts are inferred from jax 0.11 on.
    before, after = (cast(edits, value.node) if () < context.jax < (0, 11) else None) or ("", "")
    if acc.shape == given.shape:
        dtype = dtype_text(edits, value.node, acc.dtype)
        if dtype is not None:
            source = (
                value.source if isinstance(value.node, ast.Name | ast.Call | ast.Attribute) else f"({value.source})"
            )
            edits.replace(value.node, f"{before}{source}.astype({dtype}){after}")
            yield suggested(f"Convert the value to {acc.dtype}", edits)
        return
    broadcast = edits.spell("jax.numpy.broadcast_to", value.node, ("jax.numpy", "jnp"))
    if broadcast is not None and _broadcasts(given.shape or (), acc.shape or ()):
        edits.replace(value.node, f"{before}{broadcast}({value.source}, {shape_text(acc.shape)}){after}")
        yield suggested(f"Broadcast the value to {shape_text(acc.shape)}", edits)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a value of one shape can be broadcast to another."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))
