"""
## What it does
Finds barriers and other refs taken for each other: waiting on a ref that is no barrier, giving a copy another ref as
its barrier, reading or storing a barrier like an array.

## Why it is wrong
`plgpu.barrier_wait`, `plgpu.barrier_arrive` and the copies into SMEM work on what `plgpu.Barrier(...)` allocates. A
barrier has no value: it cannot be read, stored or computed with. Mostly the parameters of the body stand in another
order than the scratch types.

## Example
```python
def body(x_gmem, o_gmem, barrier, x_smem):   # scratch_types=[plgpu.SMEM(...), plgpu.Barrier()]
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
```

## Use instead
```python
def body(x_gmem, o_gmem, x_smem, barrier):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
```

## Fix safety
This rule offers no fix.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
jax does not check it: it fails in `_barrier_wait_lowering`, `_barrier_arrive_lowering`, `_copy_gmem_to_smem_lowering`
(`jax/_src/pallas/mosaic_gpu/primitives.py`), `_handle_transforms` (`lowering.py`) and `FragmentedArray.load_strided`
(`jax/experimental/mosaic/gpu/fragmented_array.py`).
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU, PRIMITIVES, Operand, operands, place, quoted

SINCE = "0.1.0"
SPECIFICITY = 54
SITES = (
    (PRIMITIVES, "_barrier_wait_lowering"),
    (PRIMITIVES, "_barrier_arrive_lowering"),
    (PRIMITIVES, "_copy_gmem_to_smem_lowering"),
    (LOWERING, "_handle_transforms"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray.load_strided"),
)
_ON_BARRIERS = ("barrier_wait", "barrier_arrive", "copy_gmem_to_smem", "tcgen05_mma", "tcgen05_commit_arrive")
_ON_ARRAYS = ("get", "swap", "addupdate", "load", "masked_load", "masked_swap")


def judge(fault: Fault, context: Context) -> Finding | None:
    equation = fault.equation
    if equation is None or fault.stage != "lower":
        return None
    found = operands(fault)
    name = equation.primitive.removesuffix("_p")
    if name in _ON_BARRIERS:
        key = "barrier" if "barrier" in found else "ref" if name.startswith("barrier") else ""
        given = found.get(key)
        if given is None or _is_barrier(given) or given.space == "value":
            return None
        source = quoted(context, fault, "barrier", "This")
        what = f"{given.type} in {given.space.upper()}"
        text = f"{source} is no barrier but a ref, {what}: `{name}` needs what `plgpu.Barrier(...)` allocates."
        related = given.related(context, "It is allocated here.")
        return finding(__name__, fault, context, place(context, fault, "barrier"), text, related)
    if name in _ON_ARRAYS:
        given = next((o for o in found.values() if _is_barrier(o)), None)
        if given is None:
            return None
        location = context.locate(fault)
        text = (
            f"`{short(context.source(location), 40)}` reads or stores a barrier, which has no value: wait on it with "
            "`plgpu.barrier_wait`, arrive on it with `plgpu.barrier_arrive`."
        )
        return finding(__name__, fault, context, location, text, given.related(context, "It is allocated here."))
    return None


def _is_barrier(operand: Operand) -> bool:
    return "barrier" in operand.dtype.lower()
