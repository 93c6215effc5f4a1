"""
## What it does
Finds `pl.run_scoped(..., collective_axes=...)` in a branch that only some of those threads take.

## Why it is wrong
A collective allocation is one piece of memory for all threads along the axes, and a barrier of all of them stands at
its start and end. Threads that do not enter the branch never arrive there: the kernel hangs.

## Example
```python
@pl.when(jax.lax.axis_index("wg") == 0)
def _():
    pl.run_scoped(scope, plgpu.SMEM((128, 128), jnp.float32), collective_axes="wg")
```

## Use instead
```python
def body(x_gmem, o_gmem, buf):          # scratch_types=[plgpu.SMEM((128, 128), jnp.float32)]
    @pl.when(jax.lax.axis_index("wg") == 0)
    def _():
        scope(buf)
```

## Fix safety
A suggestion: the memory becomes a scratch type of the launch and is held for the whole kernel.

## Applies to
Mosaic GPU kernels with several threads; jax 0.10, 0.11 and 0.12.

## Source
`_run_scoped_lowering_rule` in `jax/_src/pallas/mosaic_gpu/lowering.py`, which puts a barrier around a collective
allocation; no version looks at the branch around it.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.gpu_hoist import hoisted
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related, silent_finding, spot_of

SINCE = "0.1.0"
CONSTRUCTS = ("control flow", "SMEM and TMEM")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "collective-scope-in-branch"):
        return None
    spot = spot_of(fault, context)
    where = narrow(spot) if spot is not None else context.locate(fault)
    axes = ", ".join(f"'{axis}'" for axis in fault.facts.get("axes") or ())
    text = (
        f"This allocates memory for all threads along {axes} and waits for each of them, but only some of them take "
        "the branch around it: the kernel hangs. Allocate outside of the branch, or in `scratch_types`."
    )
    others = related(fault, context, f"Only some of the threads along {axes} take this branch.")
    return silent_finding(__name__, fault, context, where, text, others, [_fix(fault, context, spot)])


def _fix(fault: Fault, context: Context, spot: Spot | None) -> Fix | None:
    edits = hoisted(fault, context, spot) if spot is not None and isinstance(spot.node, ast.Call) else None
    return suggested("Allocate it in the launch's scratch types", edits) if edits is not None else None
