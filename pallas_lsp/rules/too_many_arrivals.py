"""
## What it does
Finds barriers that open before all the copies which arrive on them have landed: more of them arrive than
`num_arrivals` says.

## Why it is wrong
A `plgpu.Barrier(num_arrivals=n)` opens after `n` arrivals. Two copies on a barrier for one arrival open it twice: the
wait after them returns when the first copy has landed, and what the second brings is read too early.

## Example
```python
plgpu.copy_gmem_to_smem(a_gmem, a_smem, barrier)
plgpu.copy_gmem_to_smem(b_gmem, b_smem, barrier)
plgpu.barrier_wait(barrier)                     # scratch_types=[..., plgpu.Barrier()]
```

## Use instead
```python
plgpu.copy_gmem_to_smem(a_gmem, a_smem, barrier)
plgpu.copy_gmem_to_smem(b_gmem, b_smem, barrier)
plgpu.barrier_wait(barrier)                     # scratch_types=[..., plgpu.Barrier(num_arrivals=2)]
```

## Fix safety
A suggestion: the number of arrivals is made to fit the copies. A wait may have been forgotten instead.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`barrier_wait_p` and `copy_gmem_to_smem_p` in `jax/_src/pallas/mosaic_gpu/primitives.py`; no version counts arrivals.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.arrivals import allocated_at, barrier_name, wait_for
from pallas_lsp.rules.shared.silent import checked, narrow, related, silent_finding, spot_of
from pallas_lsp.rules.shared.wording import count_text

SINCE = "0.1.0"
CONSTRUCTS = ("barriers", "copies")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "too-many-arrivals"):
        return None
    came, expected = int(fault.facts.get("arrivals", 0)), int(fault.facts.get("expected", 0))
    wait = spot_of(fault, context)
    where = narrow(wait) if wait is not None else context.locate(fault)
    name, barrier = barrier_name(wait), allocated_at(fault, context)
    text = (
        f"{name} opens after {count_text(expected, 'arrival')}, but {came} come before this wait: it returns while a "
        "copy is still under way, and what that brings is read too early."
    )
    others = list(related(fault, context, "This arrives once."))
    if barrier is not None:
        others.append(Related(barrier.location, f"The barrier opens after {count_text(expected, 'arrival')}."))
    fix = wait_for(barrier, came) if barrier is not None else None
    return silent_finding(__name__, fault, context, where, text, others, [fix])
