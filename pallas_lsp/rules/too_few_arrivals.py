"""
## What it does
Finds waits on a barrier to which fewer arrivals come than it waits for.

## Why it is wrong
A `plgpu.Barrier(num_arrivals=n)` opens when `n` arrivals came since it opened last: each `copy_gmem_to_smem` on it
arrives once, and so does each `plgpu.barrier_arrive`. With fewer, `barrier_wait` never returns: the kernel hangs.

## Example
```python
plgpu.copy_gmem_to_smem(x_gmem, buf, barrier)
plgpu.barrier_wait(barrier)                     # scratch_types=[..., plgpu.Barrier(num_arrivals=2)]
```

## Use instead
```python
plgpu.copy_gmem_to_smem(x_gmem, buf, barrier)
plgpu.barrier_wait(barrier)                     # scratch_types=[..., plgpu.Barrier(num_arrivals=1)]
```

## Fix safety
A suggestion: the number of arrivals is made to fit the copies. A copy may have been forgotten instead.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`barrier_wait_p` and `copy_gmem_to_smem_p` in `jax/_src/pallas/mosaic_gpu/primitives.py`; no version counts arrivals.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Related, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.arrivals import allocated_at, barrier_name, wait_for
from pallas_lsp.rules.shared.silent import checked, narrow, related, silent_finding, spot_of
from pallas_lsp.rules.shared.wording import count_text

SINCE = "0.1.0"
CONSTRUCTS = ("barriers",)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "too-few-arrivals"):
        return None
    came, expected = int(fault.facts.get("arrivals", 0)), int(fault.facts.get("expected", 0))
    wait = spot_of(fault, context)
    where = narrow(wait) if wait is not None else context.locate(fault)
    name, barrier = barrier_name(wait), allocated_at(fault, context)
    text = f"{name} waits for {count_text(expected, 'arrival')}, but {_came(came)} before this wait"
    if fault.facts.get("waits") != 1:
        text += " and after the wait before it"
    text += ": it never opens, and the kernel hangs."
    if fault.facts.get("later") and not came:
        text += " The copies that arrive stand after the wait."
    others = list(related(fault, context, "This arrives once."))
    if barrier is not None:
        others.append(Related(barrier.location, f"The barrier waits for {count_text(expected, 'arrival')}."))
    fix = wait_for(barrier, came) if barrier is not None and came and fault.facts.get("waits") == 1 else None
    return silent_finding(__name__, fault, context, where, text, others, [fix], Severity.ERROR)


def _came(number: int) -> str:
    return "none comes" if not number else f"only {number} come{'s' if number == 1 else ''}"
