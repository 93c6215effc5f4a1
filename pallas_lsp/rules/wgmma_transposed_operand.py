"""
## What it does
Finds operands of `plgpu.wgmma` that the instruction would have to transpose, for element types other than float16 and
bfloat16.

## Why it is wrong
For 16-bit types wgmma reads operands that lie in shared memory in either order. For all others (float32 as tf32,
float8, int8) the contracted dimension k has to be the contiguous one: `a` stored as (m, k) and `b` stored as (n, k),
given as `b_smem.T`.

## Example
```python
# b_smem is (k, n) = (64, 128) of float32
plgpu.wgmma(acc_ref, a_smem, b_smem)
```

## Use instead
```python
# b_smem is (n, k) = (128, 64)
plgpu.wgmma(acc_ref, a_smem, b_smem.T)
```

## Fix safety
The fixes are suggestions. Storing the operand transposed transposes the array before the launch, which costs a pass
over it. The other fix multiplies in another element type, with other rounding.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`wgmma_m64` in `jax/experimental/mosaic/gpu/wgmma.py`, "Only f16 WGMMA supports transposes".
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import mma_of
from pallas_lsp.rules.shared.gpu_operands import MGPU, Operand, argument, place, quoted
from pallas_lsp.rules.shared.gpu_sizes import shape_of
from pallas_lsp.rules.shared.gpu_sources import copied_from, operand_at_launch
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("wgmma",)
SPECIFICITY = 46
SITES = ((f"{MGPU}wgmma.py", "wgmma_m64"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    mma = mma_of(fault, "wgmma")
    if mma is None or not raised_in(fault, f"{MGPU}wgmma.py", "wgmma_m64") or mma.a.bits == 16:
        return None
    if "transposes" not in fault.message:
        return None
    wrong = mma.a if mma.a.transposed else mma.b
    order = ("(m, k)", "(k, m)") if wrong is mma.a else ("(n, k)", "(k, n)")
    name = quoted(context, fault, wrong.name, wrong.name)
    given = "" if wrong is mma.a else " and given as `.T`"
    text = (
        f"{name} lies in SMEM as {order[1]}, but `wgmma` on {wrong.dtype} needs k to be contiguous: stored as "
        f"{order[0]}{given}. Only float16 and bfloat16 operands are read in either order."
    )
    related = wrong.related(context, f"{name} is allocated here.")
    fixes = [_stored_transposed(context, fault, wrong)]
    return finding(__name__, fault, context, place(context, fault, wrong.name), text, related, fixes)


def _stored_transposed(context: Context, fault: Fault, operand: Operand) -> Fix | None:
    """The operand stored the other way round: the array before the launch, its allocation, and the call."""
    made = operand.allocation.spot(context) if operand.allocation is not None else None
    given = argument(context, fault, operand.name)
    shape = shape_of(made) if made is not None else None
    if made is None or given is None or shape is None or len(shape.elts) != 2 or not isinstance(given.node, ast.Name):
        return None
    source = copied_from(given)
    array = operand_at_launch(context, fault, source) if source is not None else None
    if array is None:
        return None
    editors = {spot.path: Editor(spot.path, spot.syntax) for spot in (made, given, array)}
    first, second = (made.syntax.source(e) for e in shape.elts)
    editors[made.path].replace(shape, f"({second}, {first})")
    editors[given.path].replace(given.node, f"{given.source}.T")
    simple = isinstance(array.node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    editors[array.path].replace(array.node, f"{array.source if simple else f'({array.source})'}.T")
    return suggested(
        "Store the operand transposed, with k contiguous, and transpose the array before the launch", *editors.values()
    )
