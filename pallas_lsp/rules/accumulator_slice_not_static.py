"""
## What it does
Finds slices of a WGMMA accumulator whose place is only known when the kernel runs, and indices that take a single
row.

## Why it is wrong
An accumulator lives in registers, and registers have no addresses that a running kernel could compute. A part of an
accumulator has to be known while the kernel is traced: `acc_ref.at[:, 0:128]` or `pl.ds(128, 128)` with Python
numbers, in whole tiles of 64 rows and 8 columns.

## Example
```python
@pl.loop(0, 2)
def _(head):
    plgpu.wgmma(acc_ref.at[:, pl.ds(head * 128, 128)], q_smem, k_smem)
```

## Use instead
A Python loop, which is unrolled while the kernel is traced:

```python
for head in range(2):
    plgpu.wgmma(acc_ref.at[:, pl.ds(head * 128, 128)], q_smem, k_smem)
```

## Fix safety
Unrolling is a suggestion: the kernel computes the same, but its code grows with the number of steps.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`_wgmma_lowering` and `_wgmma_warpgroup_lowering` in `jax/_src/pallas/mosaic_gpu/primitives.py`, "Only static slices
are supported"; `FragmentedArray.__getitem__` in `jax/experimental/mosaic/gpu/fragmented_array.py`.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Location
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_loops import unrolled
from pallas_lsp.rules.shared.gpu_operands import CORE, MGPU, PRIMITIVES, argument, call_spot, operands
from pallas_lsp.rules.shared.places import Spot

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators", "refs")
SPECIFICITY = 51
SITES = (
    (PRIMITIVES, "_wgmma_lowering"),
    (PRIMITIVES, "_wgmma_warpgroup_lowering"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray.__getitem__"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray.__setitem__"),
)
_SLICES = ("static slices", "static indices", "Static slices", "int_indexer_shape", "indexing transforms")


def judge(fault: Fault, context: Context) -> Finding | None:
    of_wgmma = fault.equation is not None and fault.equation.primitive in ("wgmma", "wgmma_ref")
    raised = raised_in(fault, PRIMITIVES, "_wgmma_lowering", "_wgmma_warpgroup_lowering") or raised_in(
        fault, f"{MGPU}fragmented_array.py", "__getitem__", "__setitem__"
    )
    if passed_through(fault, CORE, "_getitem") and "TracerBoolConversionError" in fault.exception:
        place = context.locate(fault)
        syntax, node = context.syntax(place.path), context.node(place)
        read = Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.Subscript) else None
        return _traced(fault, context, place, read)
    acc = operands(fault).get("acc")
    if not of_wgmma or not raised or acc is None or not any(word in fault.message for word in _SLICES):
        return None
    spot = argument(context, fault, "acc") or call_spot(context, fault)
    place = spot.location if spot is not None else context.locate(fault)
    source = short(context.source(place), 50)
    if "int_indexer" in fault.message or "indexing transforms" in fault.message:
        text = (
            f"`{source}` is no slice of whole tiles: an accumulator can be taken apart by slices that are known while "
            "the kernel is traced, in whole tiles of 64 rows and 8 columns, and in no other way."
        )
        return finding(__name__, fault, context, place, text)
    return _traced(fault, context, place, spot)


def _traced(fault: Fault, context: Context, place: Location, spot: Spot | None) -> Finding:
    source = short(context.source(place), 50)
    index = _dynamic(spot) if spot is not None else None
    what = f"the index `{index}`" if index else "its index"
    text = (
        f"`{source}` takes a part of an accumulator whose place is only known when the kernel runs ({what} is "
        "traced). An accumulator lives in registers: its parts have to be known while the kernel is traced."
    )
    return finding(__name__, fault, context, place, text, (), [unrolled(spot) if spot else None])


def _dynamic(spot: Spot) -> str:
    """The index of the loop around a slice that the slice reads, also through names."""
    names = {n.id for n in ast.walk(spot.node) if isinstance(n, ast.Name)}
    for name in [n for n in ast.walk(spot.node) if isinstance(n, ast.Name)]:
        value = spot.syntax.value(name)
        names |= {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} if isinstance(value, ast.expr) else set()
    for parent in spot.syntax.ancestors(spot.node):
        if isinstance(parent, ast.FunctionDef | ast.Lambda):
            for parameter in parent.args.args:
                if parameter.arg in names and not parameter.arg.startswith("acc"):
                    return parameter.arg
    return ""
