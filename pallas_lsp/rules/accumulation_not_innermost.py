"""
## What it does
Finds output blocks that are added to in several runs of grid steps: an axis that is summed over is not the innermost.

## Why it is wrong
A TPU keeps an output block in VMEM while consecutive steps have the same block index, and writes it back when the index
changes. When the grid comes back to a block, its old contents are not loaded again: what was summed up before is lost.
So the axes that are summed over have to be the last ones of the grid, which run fastest.

## Example
```python
grid=(k // bk, m // bm, n // bn),
out_specs=pl.BlockSpec((bm, bn), lambda l, i, j: (i, j)),
```

## Use instead
```python
grid=(m // bm, n // bn, k // bk),
out_specs=pl.BlockSpec((bm, bn), lambda i, j, l: (i, j)),
```

## Fix safety
A suggestion: the axes of the grid, the parameters of all index maps and the numbers of `pl.program_id` change places.

## Applies to
TPU and kernels that name no backend; jax 0.10, 0.11 and 0.12.

## Source
The program of a kernel and its output's index map for each step of the grid; jax itself looks at it only in its TPU
interpreter ("Revisited block").
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.grid_order import reordered
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.silent import checked, grid_element, index_map, map_element, related, silent_finding
from pallas_lsp.rules.shared.wording import and_list, shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators", "threads and grids")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "accumulation-not-innermost"):
        return None
    facts = fault.facts
    axes = [int(axis) for axis in facts.get("axes") or ()]
    rank = len(facts["grid"])
    wrong = next((a for a in axes if any(b not in axes for b in range(a + 1, rank))), None)
    launch = launch_of(fault, context)
    grid = grid_element(fault, context, wrong)
    whole = launch.argument("grid") if launch is not None else None
    place = grid or whole
    where = place.location if place is not None else launch.name if launch is not None else context.locate(fault)
    step, block = shape_text(facts["step"]), shape_text(facts["at"])
    over = f"axis {wrong} of the grid" if wrong is not None else "the grid"
    if grid is not None:
        over += f" (`{short(grid.source, 30)}`)"
    text = (
        f"Output {facts['index']} is summed over {over}, but axes after it change its block: in step {step} the grid "
        f"comes back to block {block}, whose sums so far are not loaded again. Axes that are summed over have to be "
        "the last."
    )
    others: list[Related] = []
    found = index_map(fault, context, facts)
    element = map_element(fault, context, facts, 0)
    if found is not None and element is not None:
        used = and_list([str(axis) for axis in range(rank) if axis not in axes])
        others.append(Related(element.location, f"The block index of the output changes with axes {used} of the grid."))
    others += related(fault, context, "This adds to what the block holds.")
    return silent_finding(__name__, fault, context, where, text, others, [_fix(fault, context, axes, rank)])


def _fix(fault: Fault, context: Context, axes: list[int], rank: int) -> Fix | None:
    order = [axis for axis in range(rank) if axis not in axes] + axes
    editor = reordered(fault, context, order) if axes and order != list(range(rank)) else None
    title = f"Make axis {and_list([str(axis) for axis in axes])} the last of the grid"
    return suggested(title, editor) if editor is not None else None
