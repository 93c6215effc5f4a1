"""
## What it does
Finds WGMMA accumulators that all threads of a kernel would share: in `pl.run_scoped(..., collective_axes=...)`, or
among the scratch types of a kernel with several threads.

## Why it is wrong
An accumulator lives in the registers of one warpgroup, and no other can read them. With `num_threads=` the scratch
types of `plgpu.kernel` are allocated for all threads together, so an accumulator cannot stand there: each thread
allocates its own with a `pl.run_scoped` of its own.

## Example
```python
plgpu.kernel(body, ..., scratch_types=[plgpu.SMEM(...), plgpu.ACC((64, 128))], num_threads=2, thread_name="wg")
```

## Use instead
```python
def body(x_ref, o_ref, x_smem):
    def product(acc_ref):
        plgpu.wgmma(acc_ref, a_smem, b_smem)
        return acc_ref[...]

    o_ref[...] = pl.run_scoped(product, plgpu.ACC((64, 128)))
```

## Fix safety
The fixes put the accumulator into a scope of each thread and are suggestions: each thread then accumulates for
itself.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`_run_scoped_lowering_rule` in `jax/_src/pallas/mosaic_gpu/lowering.py`, "WGMMA accumulators can only be allocated
non-collectively".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_operands import LOWERING, operands
from pallas_lsp.rules.shared.gpu_wrap import body_in_scope
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.uses import scoped_use
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators",)
SITES = ((LOWERING, "_run_scoped_lowering_rule"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, LOWERING, "_run_scoped_lowering_rule") or "non-collectively" not in fault.message:
        return None
    made = [o for o in operands(fault).values() if o.space == "regs" and o.allocation is not None]
    spot = made[0].allocation.spot(context) if made and made[0].allocation is not None else None
    place = spot.location if spot is not None else context.locate(fault)
    scope = _scope(spot) if spot is not None else None
    others = len(operands(fault)) - len(made)
    source = short(context.source(place), 50)
    if scope is not None:
        text = (
            f"`{source}` lives in the registers of one thread, but this scope allocates for all threads together "
            "(`collective_axes`)."
        )
        if others:
            text += " Allocate the accumulator in a scope of its own, without `collective_axes`."
    else:
        text = (
            f"`{source}` lives in the registers of one thread, but the scratch types of a kernel with several threads "
            "are allocated for all of them together. Allocate it with `pl.run_scoped` in the body."
        )
    related = []
    launch = launch_of(fault, context)
    threads = launch.argument("num_threads") if launch is not None else None
    if scope is None and threads is not None:
        related.append(Related(threads.location, "The kernel has several threads."))
    fixes = list(_fixes(context, fault, spot, scope, others)) if spot is not None else []
    return finding(__name__, fault, context, place, text, related, fixes)


def _scope(spot: Spot) -> ast.Call | None:
    """The call of run_scoped that an accumulator is allocated in."""
    for parent in spot.syntax.ancestors(spot.node):
        if isinstance(parent, ast.stmt):
            break
        if isinstance(parent, ast.Call) and scoped_use(spot.at(parent)) is not None:
            return parent
    return None


def _fixes(context: Context, fault: Fault, spot: Spot, scope: ast.Call | None, others: int) -> Iterator[Fix | None]:
    if scope is not None:
        keyword = next((k for k in scope.keywords if k.arg == "collective_axes"), None)
        if keyword is not None and not others:
            edits = Editor(spot.path, spot.syntax)
            edits.remove_argument(scope, keyword)
            yield suggested("Leave `collective_axes` out: each thread has its own accumulator", edits)
        return
    yield body_in_scope(context, fault, spot)
