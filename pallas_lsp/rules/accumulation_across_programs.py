"""
## What it does
Finds Triton kernels in which several programs of the grid change the same block of an output.

## Why it is wrong
The programs of a GPU's grid run at the same time, in no order. One that reads what is there, adds to it and stores the
sum takes no notice of what another stores in between, and a start value that one program stores may come after the sums
of others. The results are different from run to run.

## Example
```python
@pl.when(pl.program_id(0) == 0)
def _():
    o_ref[...] = jnp.zeros_like(o_ref)

o_ref[...] += x_ref[...]  # all programs have the same block of o_ref
```

## Use instead
```python
def body(i, total):  # one program loops over the blocks
    return total + x_ref[i]

o_ref[...] = jax.lax.fori_loop(0, x_ref.shape[0], body, jnp.zeros(o_ref.shape, o_ref.dtype))
```
Or give the launch an array of zeros that is aliased to the output, and add with `plt.atomic_add`.

## Fix safety
This rule offers no fix.

## Applies to
Triton kernels; jax 0.10, 0.11 and 0.12.

## Source
The program of a kernel and its output's index map for each step of the grid; jax does not look at it.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.silent import checked, narrow, silent_finding, spot_of
from pallas_lsp.rules.shared.wording import and_list, shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("Triton", "accumulators", "threads and grids")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "accumulation-across-programs"):
        return None
    store = spot_of(fault, context)
    where = narrow(store) if store is not None else context.locate(fault)
    axes = [str(axis) for axis in fault.facts.get("axes") or ()]
    along = f" along {'axis' if len(axes) == 1 else 'axes'} {and_list(axes)}" if axes else ""
    name = f"`{short(store.source, 40)}`" if store is not None else "This"
    text = (
        f"{name} changes block {shape_text(fault.facts['at'])} of output {fault.facts['index']} in several programs of "
        f"the grid{along}, which run at the same time: their changes and the start value overwrite each other. Loop "
        "over the blocks in one program, or add with `plt.atomic_add` to zeros that are aliased to the output."
    )
    return silent_finding(__name__, fault, context, where, text)
