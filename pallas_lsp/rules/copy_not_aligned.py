"""
## What it does
Finds copies between GMEM and SMEM whose rows do not fit the copy engine's units: rows in GMEM that do not start at
multiples of 16 bytes, rows of SMEM that are no multiple of 16 bytes, a last dimension that is not contiguous, sizes
that the swizzle does not allow.

## Why it is wrong
The GPU's copy engine (TMA) reads and writes 16 bytes at a time. In the array in GMEM every row has to start at a
multiple of 16 bytes, so the last dimension has to have a multiple of 16 bytes; so does the row that is copied. With a
swizzle, the row of a tile has to be exactly as many bytes as the swizzle says.

## Example
```python
# x_gmem is float16[128,6]: rows of 12 bytes
plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
```

## Use instead
Pad the last dimension before the launch to a multiple of 16 bytes (8 elements of float16), or read the array from
GMEM without a copy: `x_gmem[...]`.

## Fix safety
The fixes change sizes and are suggestions.

## Applies to
Mosaic GPU on Hopper and Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`LaunchContext._prepare_tma`, `_check_tma_strides_and_swizzle`, `_get_tma_desc` in
`jax/experimental/mosaic/gpu/launch_context.py`; `_copy_gmem_to_smem_lowering` in
`jax/_src/pallas/mosaic_gpu/primitives.py`, "divisible by the warpgroup size".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_copies import Copy, copy_of
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, place, quoted, shape_text
from pallas_lsp.rules.shared.gpu_sizes import multiple, resized

SINCE = "0.1.0"
CONSTRUCTS = ("copies",)
SITES = (
    (f"{MGPU}launch_context.py", "LaunchContext._prepare_tma"),
    (f"{MGPU}launch_context.py", "LaunchContext._check_tma_strides_and_swizzle"),
    (f"{MGPU}launch_context.py", "LaunchContext._get_tma_desc.<locals>.init_tma_desc"),
    (f"{MGPU}launch_context.py", "LaunchContext.async_copy"),
    (PRIMITIVES, "_copy_gmem_to_smem_lowering"),
)
_UNIT = 16
_WARPGROUP = 128


def judge(fault: Fault, context: Context) -> Finding | None:
    copy = copy_of(fault)
    functions = ("_prepare_tma", "_check_tma_strides_and_swizzle", "init_tma_desc")
    in_context = raised_in(fault, f"{MGPU}launch_context.py", *functions)
    if copy is None or copy.smem.shape is None or not copy.gmem.bits:
        return None
    message = fault.message
    if raised_in(fault, PRIMITIVES, "_copy_gmem_to_smem_lowering") and "warpgroup size" in message:
        return _too_small(fault, context, copy)
    if not in_context:
        return None
    element = copy.gmem.bits
    unit = max(1, _UNIT * 8 // element)
    if "stride of the last dimension" in message:
        gmem = quoted(context, fault, _side(copy, copy.gmem), "The slice in GMEM")
        text = (
            f"{gmem} does not run along the last dimension of its array: its elements are not neighbours in memory, "
            "and the copy engine moves contiguous rows only. Copy a slice of the last dimension, or read it from GMEM "
            "without a copy."
        )
        return finding(__name__, fault, context, place(context, fault, _side(copy, copy.gmem)), text)
    if "swizzle=" in message:
        smem = quoted(context, fault, _side(copy, copy.smem), "The ref in SMEM")
        made = copy.smem.allocation
        swizzle = made.swizzle if made is not None else None
        row = f"{swizzle} bytes, {swizzle * 8 // element} elements" if swizzle else "as many bytes as the swizzle"
        text = f"{smem} is swizzled by {swizzle} bytes, but its rows are not {row}: tile it by (8, row)."
        related = copy.smem.related(context, f"{smem} is allocated here.")
        return finding(__name__, fault, context, place(context, fault, _side(copy, copy.smem)), text, related)
    strides = "strides" in message
    wrong = copy.gmem if strides else copy.smem
    name = quoted(context, fault, _side(copy, wrong), "The ref")
    columns = copy.smem.shape[-1] if copy.smem.shape else 1
    if strides:
        text = (
            f"The array of {name} has rows that do not start at multiples of {_UNIT} bytes, which the copy engine "
            f"needs: its last dimension has to be a multiple of {unit} elements of {copy.gmem.dtype}. Pad it before "
            "the launch, or read it from GMEM without a copy."
        )
    else:
        text = (
            f"{name} is {shape_text(copy.smem.shape)}: rows of {columns * element // 8} bytes, but a copy between "
            f"GMEM and SMEM moves multiples of {_UNIT} bytes ({unit} elements of {copy.gmem.dtype})."
        )
    related = copy.smem.related(context, "The ref in SMEM is allocated here.")
    location = place(context, fault, _side(copy, wrong))
    return finding(__name__, fault, context, location, text, related, _fixes(context, copy, columns, unit))


def _fixes(context: Context, copy: Copy, columns: int, unit: int) -> Iterator[Fix]:
    made = copy.smem.allocation
    spot = made.spot(context) if made is not None else None
    if made is None or spot is None or columns % unit == 0 or not made.shape or made.shape[-1] != columns:
        return
    new = multiple(columns, unit)
    yield from resized(spot, len(made.shape) - 1, columns, new, f"rows of multiples of {_UNIT} bytes")


def _too_small(fault: Fault, context: Context, copy: Copy) -> Finding:
    shape = copy.smem.shape or ()
    size = math.prod(shape) * copy.smem.bits // 8
    name = quoted(context, fault, _side(copy, copy.smem), "The ref in SMEM")
    text = (
        f"{name} is {shape_text(shape)}: {size} bytes, but in this jax a copy into SMEM moves multiples of "
        f"{_WARPGROUP} bytes. Copy more, or read it from GMEM without a copy."
    )
    related = copy.smem.related(context, f"{name} is allocated here.")
    fixes: list[Fix] = []
    made = copy.smem.allocation
    spot = made.spot(context) if made is not None else None
    if spot is not None and made is not None and len(shape) == 1 and copy.smem.bits and made.shape == shape:
        new = multiple(shape[0], _WARPGROUP * 8 // copy.smem.bits)
        fixes = list(resized(spot, 0, shape[0], new, f"a multiple of {_WARPGROUP} bytes"))
    return finding(__name__, fault, context, place(context, fault, _side(copy, copy.smem)), text, related, fixes)


def _side(copy: Copy, operand: object) -> str:
    return "src" if operand is copy.src else "dst"
