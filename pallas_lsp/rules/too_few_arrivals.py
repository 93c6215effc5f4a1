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

import ast
from collections.abc import Mapping

from pallas_lsp.model import Fault, Finding, Fix, Related, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_operands import allocation
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related, silent_finding, spot_of
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("barriers",)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "too-few-arrivals"):
        return None
    came, expected = int(fault.facts.get("arrivals", 0)), int(fault.facts.get("expected", 0))
    wait = spot_of(fault, context)
    where = narrow(wait) if wait is not None else context.locate(fault)
    name = "This barrier"
    if wait is not None and isinstance(wait.node, ast.Call):
        given = wait.syntax.arguments(wait.node).get(0, "barrier")
        name = f"`{short(wait.syntax.source(given), 40)}`" if given is not None else name
    made = fault.facts.get("allocation")
    barrier = allocation(made).spot(context) if isinstance(made, Mapping) else None
    text = f"{name} waits for {count_text(expected, 'arrival')}, but {_came(came)} before this wait"
    if fault.facts.get("waits") != 1:
        text += " and after the wait before it"
    text += ": it never opens, and the kernel hangs."
    if fault.facts.get("later") and not came:
        text += " The copies that arrive stand after the wait."
    others = list(related(fault, context, "This arrives once."))
    if barrier is not None:
        others.append(Related(barrier.location, f"The barrier waits for {count_text(expected, 'arrival')}."))
    fix = _fix(barrier, came) if barrier is not None and came and fault.facts.get("waits") == 1 else None
    return silent_finding(__name__, fault, context, where, text, others, [fix], Severity.ERROR)


def _came(number: int) -> str:
    return "none comes" if not number else f"only {number} come{'s' if number == 1 else ''}"


def _fix(barrier: Spot, came: int) -> Fix | None:
    """The number of arrivals that come, where the barrier is allocated."""
    call = barrier.node
    if not isinstance(call, ast.Call):
        return None
    given = barrier.syntax.arguments(call).get(0, "num_arrivals")
    if given is None or given not in ast.walk(call):
        return None
    edits = Editor(barrier.path, barrier.syntax)
    edits.replace(given, str(came))
    return suggested(f"Wait for {count_text(came, 'arrival')}", edits)
