"""
## What it does
Finds barriers of `plgpu.tcgen05_mma` and `plgpu.tcgen05_commit_arrive` that are not made for the tensor core.

## Why it is wrong
The tensor core runs on while the kernel goes on, and arrives on a barrier when its product is done. Waiting on such a
barrier also orders the reads of TMEM after it, which the barrier has to be made for:
`plgpu.Barrier(orders_tensor_core=True)`.

## Example
```python
scratch_types=[..., plgpu.Barrier()]
plgpu.tcgen05_mma(acc_tmem, a_smem, b_smem, barrier)
```

## Use instead
```python
scratch_types=[..., plgpu.Barrier(orders_tensor_core=True)]
```

## Fix safety
Safe: the barrier counts the same arrivals, and a wait on it orders more.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`_tcgen05_mma_abstract_eval` and `_tcgen05_commit_arrive_abstract_eval` in `jax/_src/pallas/mosaic_gpu/primitives.py`,
"orders_tensor_core".
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.gpu_mma import set_keyword
from pallas_lsp.rules.shared.gpu_operands import PRIMITIVES, operands, place, quoted
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("tcgen05", "barriers")
SITES = ((PRIMITIVES, "_tcgen05_mma_abstract_eval"), (PRIMITIVES, "_tcgen05_commit_arrive_abstract_eval"))


def judge(fault: Fault, context: Context) -> Finding | None:
    functions = [function for _, function in SITES]
    if not raised_in(fault, PRIMITIVES, *functions) or "orders_tensor_core" not in fault.message:
        return None
    barrier = operands(fault).get("barrier")
    source = quoted(context, fault, "barrier", "The barrier")
    text = (
        f"{source} is not made for the tensor core: a wait on it would not order the reads of TMEM after the product. "
        "Allocate it with `orders_tensor_core=True`."
    )
    fixes: list[Fix | None] = []
    made = barrier.allocation.spot(context) if barrier is not None and barrier.allocation is not None else None
    if made is not None and isinstance(made.node, ast.Call):
        edits = Editor(made.path, made.syntax)
        set_keyword(edits, made.node, "orders_tensor_core", "True")
        fixes.append(safe("Allocate the barrier with `orders_tensor_core=True`", edits))
    related = barrier.related(context, "The barrier is allocated here.") if barrier is not None else ()
    return finding(__name__, fault, context, place(context, fault, "barrier"), text, related, fixes)
