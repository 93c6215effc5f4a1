"""
## What it does
Finds kernels that are compiled for a GPU whose generation does not have an operation that they use: counting bytes at a
barrier and products of float64 before Hopper, copies with a barrier before Hopper.

## Why it is wrong
An operation of Mosaic GPU is an instruction of the GPU. Copies by the copy engine with a barrier that counts their
bytes, `wgmma` and products of float64 exist from Hopper (compute capability 9.0) on, `tcgen05` from Blackwell (10.0)
on.

## Example
```python
plgpu.copy_gmem_to_smem(x_ref, smem, barrier)      # compiled for compute capability 8.0
```

## Use instead
```python
plgpu.copy_gmem_to_smem(x_ref, smem)
plgpu.wait_gmem_to_smem(0)
```

## Fix safety
This rule offers no fix.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`BarrierRef.arrive_expect_tx` and `BarrierRef.complete_tx` in `jax/experimental/mosaic/gpu/utils.py`;
`_mma_single_tile` in `jax/experimental/mosaic/gpu/mma.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.gpu_operands import MGPU
from pallas_lsp.rules.shared.site_table import Row

SINCE = "0.1.0"
CONSTRUCTS = ("primitives",)

_ROWS = (
    Row(
        f"{MGPU}utils.py",
        ("BarrierRef.arrive_expect_tx", "BarrierRef.complete_tx"),
        "`{source}` counts bytes at a barrier, which GPUs before the Hopper generation cannot do: copy without a "
        "barrier and wait with `plgpu.wait_gmem_to_smem`.",
        "only supported on Hopper",
    ),
    Row(
        f"{MGPU}launch_context.py",
        ("LaunchContext.async_copy",),
        "`{source}` is made without the copy engine, for a GPU before the Hopper generation: so it copies 2-D arrays "
        "in tiles of (8, swizzle), without a barrier.",
        "^$|Only 2D copies implemented",
        exceptions=("NotImplementedError",),
    ),
    Row(
        f"{MGPU}mma.py",
        ("_mma_single_tile",),
        "`{source}` multiplies float64, which GPUs before the Hopper generation cannot do in this way: use float32.",
        "only supported on Hopper",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
