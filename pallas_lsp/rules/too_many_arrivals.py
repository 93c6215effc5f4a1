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

import ast
from collections.abc import Mapping

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_operands import allocation
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related, silent_finding, spot_of
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("barriers", "copies")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "too-many-arrivals"):
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
    text = (
        f"{name} opens after {count_text(expected, 'arrival')}, but {came} come before this wait: it returns while a "
        "copy is still under way, and what that brings is read too early."
    )
    others = list(related(fault, context, "This arrives once."))
    if barrier is not None:
        others.append(Related(barrier.location, f"The barrier opens after {count_text(expected, 'arrival')}."))
    fix = _fix(barrier, came) if barrier is not None else None
    return silent_finding(__name__, fault, context, where, text, others, [fix])


def _fix(barrier: Spot, came: int) -> Fix | None:
    """The number of arrivals that come, where the barrier is allocated."""
    call = barrier.node
    if not isinstance(call, ast.Call):
        return None
    edits = Editor(barrier.path, barrier.syntax)
    given = barrier.syntax.arguments(call).get(0, "num_arrivals")
    if given is not None:
        edits.replace(given, str(came))
    elif call.args or any(each.arg is None for each in call.keywords):
        return None
    else:
        end = barrier.syntax.span(call.func)[1]
        edits.insert(end + 1, f"num_arrivals={came}" + (", " if call.keywords else ""))
    return suggested(f"Wait for {count_text(came, 'arrival')}", edits)
