"""
## What it does
Finds asynchronous stores into the shared memory of a cluster (`plgpu.async_store_smem`) and prefetches
(`plgpu.async_prefetch`) of a size or kind that Mosaic GPU cannot make.

## Why it is wrong
The 128 threads of a warpgroup share an asynchronous store evenly, in whole bytes, and so do their counts at the
barrier. A prefetch is made by each block for itself under warpgroup semantics: blocks cannot share one.

## Example
```python
plgpu.async_prefetch(x_ref, collective_axes="c")
```

## Use instead
```python
plgpu.async_prefetch(x_ref)
```

## Fix safety
A prefetch by each block fetches the same data (safe).

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_async_store_smem_op_lowering_rule` and `_mgpu_async_prefetch_op_lowering_rule` in
`jax/experimental/mosaic/gpu/dialect_lowering.py`; `FragmentedArray.store_tiled_async` in
`jax/experimental/mosaic/gpu/fragmented_array.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.gpu_operands import MGPU
from pallas_lsp.rules.shared.site_table import Row

SINCE = "0.1.0"
CONSTRUCTS = ("copies",)
_DIALECT = f"{MGPU}dialect_lowering.py"

_ROWS = (
    Row(
        _DIALECT,
        ("_async_store_smem_op_lowering_rule",),
        "`{source}` stores {got} bytes, which 128 threads cannot share evenly: store a value of a multiple of {step} "
        "bytes.",
        r"Transfer of (?P<got>\d+) bytes is not divisible by (?P<step>\d+)",
        at=((0, "src"),),
    ),
    Row(
        _DIALECT,
        ("_async_store_smem_op_lowering_rule",),
        "`{source}` stores {got} bits, which are no whole bytes for each thread: store a value of a multiple of {step} "
        "bits.",
        r"Transfer of (?P<got>\d+) bits is not divisible by (?P<step>\d+)",
        at=((0, "src"),),
    ),
    Row(
        f"{MGPU}fragmented_array.py",
        ("FragmentedArray.store_tiled_async",),
        "`{source}` stores a value whose layout an asynchronous store cannot take apart: cast it to a tiled layout in "
        "which each thread holds 4, 8 or 16 neighbouring bytes.",
        "register bitwidth|Replicated dimensions",
        at=((0, "src"),),
    ),
    Row(
        f"{MGPU}fragmented_array.py",
        ("FragmentedArray.store_tiled_async",),
        "`{source}` stores into the memory of several devices, which an asynchronous store cannot.",
        "Multimem refs",
    ),
    Row(
        _DIALECT,
        ("_mgpu_async_prefetch_op_lowering_rule",),
        "Blocks cannot share a prefetch under warpgroup semantics: leave `collective_axes` out, so that each block "
        "prefetches for itself.",
        "Collective prefetches",
        at=((None, "collective_axes"),),
        fixes=lambda d: keyword_edits.remove_keyword(d.spot, "collective_axes", "Prefetch in each block", Safety.SAFE),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
