"""
## What it does
Finds output blocks that every step of an axis of the grid stores to as a whole, each from another block of an input.

## Why it is wrong
Where the index map of an output leaves an axis of the grid out, all steps along that axis have the same block. A store
replaces what the steps before have stored, so that only the last one's result is left (on a GPU any one's, since
programs run at the same time). A sum over the axis needs `+=` and a start value; separate results need an output with
a block for each step.

## Example
```python
def kernel(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=0, keepdims=True)

out_specs=pl.BlockSpec((1, 128), lambda i: (0, 0))
```

## Use instead
```python
def kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)
```

## Fix safety
Adding up is offered where a sum is stored, as a suggestion.

## Applies to
TPU, Triton and kernels that name no backend; jax 0.10, 0.11 and 0.12. Stores that read scratch memory or the output
itself, or that stand in a branch or loop, are left alone.

## Source
Index maps evaluated for each step of the grid, and what the stored value is worked out from; jax does not look at it.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, index_map, map_element, silent_finding, spot_of
from pallas_lsp.rules.shared.start_statements import zero_and_add
from pallas_lsp.rules.shared.wording import and_list

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch", "accumulators")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "output-block-overwritten"):
        return None
    store = spot_of(fault, context)
    statement = store.syntax.statement(store.node) if store is not None else None
    where = store.location if store is not None else context.locate(fault)
    target = _target(store, statement)
    if target is not None:
        where = target.location
    axes = [int(axis) for axis in fault.facts["axes"]]
    steps = [fault.facts["grid"][axis] for axis in axes]
    over = f"the {steps[0]} steps of axis {axes[0]}"
    if len(axes) > 1:
        over = f"all steps of axes {and_list([str(axis) for axis in axes])}"
    name = f"`{short(target.source, 40)}`" if target is not None else f"Output {fault.facts['index']}"
    text = (
        f"{name} is stored anew in {over} of the grid, which all have the same block of the output: only what the last "
        "one stores is left. Add up with `+=` and a start value, or give each step a block of its own."
    )
    others = []
    found, element = index_map(fault, context, fault.facts), map_element(fault, context, fault.facts, 0)
    if found is not None and element is not None:
        others.append(Related(element.location, "The block of the output does not change with that axis."))
    fixes: list[Fix | None] = []
    if fault.facts.get("sums") and store is not None:
        editor = zero_and_add(fault, context, store, axes)
        fixes.append(suggested("Add up over the steps", editor) if editor is not None else None)
    return silent_finding(__name__, fault, context, where, text, others, fixes)


def _target(store: Spot | None, statement: ast.stmt | None) -> Spot | None:
    if store is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    return store.at(statement.targets[0])
