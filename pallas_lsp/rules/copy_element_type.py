"""
## What it does
Finds copies between GMEM and SMEM of element types that the GPU's copy engine (TMA) does not know: float64, complex
numbers, booleans.

## Why it is wrong
TMA knows integers of 8 to 64 bits, float16, bfloat16, float32, the 8-bit floats and packed 4-bit types. Arrays are
float64 or complex mostly by accident, after `jax_enable_x64`.

## Example
```python
jax.config.update("jax_enable_x64", True)
x = jnp.linspace(0.0, 1.0, 128 * 128).reshape(128, 128)   # float64
kernel(x)                                                  # copies it into SMEM
```

## Use instead
```python
kernel(x.astype(jnp.float32))
```

## Fix safety
The fixes are suggestions: float32 has fewer bits; reading the array from GMEM without a copy keeps them and is
slower.

## Applies to
Mosaic GPU on Hopper and Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`_tma_dma_type` in `jax/experimental/mosaic/gpu/launch_context.py`, "unsupported TMA dtype"; `bitwidth_impl` in
`jax/experimental/mosaic/gpu/utils.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_copies import converted_before_launch, copy_of
from pallas_lsp.rules.shared.gpu_mma import dtype_text
from pallas_lsp.rules.shared.gpu_operands import MGPU, argument, place, quoted
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("copies", "element types")
SPECIFICITY = 48
SITES = (
    (f"{MGPU}launch_context.py", "_tma_dma_type"),
    (f"{MGPU}utils.py", "bitwidth_impl"),
)
_INSTEAD = {"float64": "float32", "bool": "int8", "complex64": "float32", "complex128": "float32"}


def judge(fault: Fault, context: Context) -> Finding | None:
    copy = copy_of(fault)
    raised = raised_in(fault, f"{MGPU}launch_context.py", "_tma_dma_type") or raised_in(
        fault, f"{MGPU}utils.py", "bitwidth_impl", "bitwidth"
    )
    if copy is None or not (raised or passed_through(fault, f"{MGPU}launch_context.py", "_tma_dma_type")):
        return None
    side = "src" if copy.gmem is copy.src else "dst"
    source = quoted(context, fault, side, "This array")
    instead = _INSTEAD.get(copy.gmem.dtype)
    advice = f" Convert it before the launch, to {instead} for example." if instead else ""
    if copy.gmem.dtype.startswith("complex"):
        advice = " Give the kernel its real and imaginary parts as two arrays."
    text = (
        f"{source} is {copy.gmem.dtype}, which a copy between GMEM and SMEM cannot move: the GPU's copy engine knows "
        f"integers and floats of up to 32 bits, and 64-bit integers.{advice}"
    )
    fixes = []
    ref = argument(context, fault, side)
    if instead is not None and ref is not None and not copy.gmem.dtype.startswith("complex"):
        dtype = dtype_text(Editor(ref.path, ref.syntax), ref.node, instead)
        if dtype is not None:
            title = f"Convert the array to {instead} before the launch"
            fixes.append(converted_before_launch(context, fault, ref, f".astype({dtype})", title))
    related = copy.smem.related(
        context, "It is copied into this allocation." if side == "src" else "It is copied from here."
    )
    return finding(__name__, fault, context, place(context, fault, side), text, related, fixes)
