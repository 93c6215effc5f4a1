"""
## What it does
Finds barriers that cannot be made: with less than one arrival, with more than 32 barriers in one allocation, or a
cluster barrier whose axes are no tuple of names.

## Why it is wrong
A barrier counts arrivals: it opens when `num_arrivals` copies or `plgpu.barrier_arrive` calls came, so it needs at
least one. Mosaic GPU initialises up to 32 barriers of one allocation. A `plgpu.ClusterBarrier` is named by the axes
of the cluster whose blocks share it, as a tuple.

## Example
```python
plgpu.Barrier(num_arrivals=0)
plgpu.Barrier(num_barriers=40)
plgpu.ClusterBarrier(collective_axes="cluster")
```

## Use instead
```python
plgpu.Barrier(num_arrivals=1)
plgpu.Barrier(num_barriers=20), plgpu.Barrier(num_barriers=20)
plgpu.ClusterBarrier(collective_axes=("cluster",))
```

## Fix safety
A tuple of axes is what was meant (safe). Another number of arrivals or barriers is a suggestion.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`Barrier.__post_init__` and `ClusterBarrier.__post_init__` in `jax/_src/pallas/mosaic_gpu/core.py`;
`BarrierRef.initialize`, `DialectBarrierRef.initialize` and `CollectiveBarrierRef.initialize` in
`jax/experimental/mosaic/gpu/utils.py`; `Barrier.__post_init__` and `CtaBarrier.__post_init__` in
`jax/experimental/mosaic/gpu/core.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.gpu_mma import set_keyword
from pallas_lsp.rules.shared.gpu_operands import CORE, MGPU, Allocation, allocation, operands
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("barriers",)
SITES = (
    (CORE, "Barrier.__post_init__"),
    (CORE, "ClusterBarrier.__post_init__"),
    (f"{MGPU}core.py", "Barrier.__post_init__"),
    (f"{MGPU}core.py", "CtaBarrier.__post_init__"),
    (f"{MGPU}utils.py", "BarrierRef.initialize"),
    (f"{MGPU}utils.py", "DialectBarrierRef.initialize"),
    (f"{MGPU}utils.py", "CollectiveBarrierRef.initialize"),
)
_MOST = 32


def judge(fault: Fault, context: Context) -> Finding | None:
    if raised_in(fault, CORE, "__post_init__") and "arrivals" in fault.message.lower():
        return _arrivals(fault, context)
    if raised_in(fault, f"{MGPU}core.py", "__post_init__") and "Arrival count" in fault.message:
        return _arrivals(fault, context)
    if raised_in(fault, f"{MGPU}utils.py", "initialize"):
        return _initialised(fault, context)
    return None


def _arrivals(fault: Fault, context: Context) -> Finding:
    location = context.locate(fault)
    syntax, node = context.syntax(location.path), context.node(location)
    fixes: list[Fix | None] = []
    if syntax is not None and isinstance(node, ast.Call):
        given = syntax.arguments(node).get(0, "num_arrivals")
        if given is not None and given in ast.walk(node):
            edits = Editor(location.path, syntax)
            edits.replace(given, "1")
            fixes.append(suggested("Wait for one arrival", edits))
            location = Spot(location.path, syntax, given).location
    text = (
        "A barrier needs at least one arrival: it opens when that many copies or `plgpu.barrier_arrive` calls came to "
        "it."
    )
    return finding(__name__, fault, context, location, text, (), fixes)


def _initialised(fault: Fault, context: Context) -> Finding | None:
    barriers = list(_barriers(fault))
    if "32 barriers" in fault.message:
        wrong = next((b for b in barriers if _count(b) > _MOST), None)
        spot = wrong.spot(context) if wrong is not None else None
        location = spot.location if spot is not None else context.locate(fault)
        count = f"{_count(wrong)}" if wrong is not None else "more than 32"
        text = f"This allocates {count} barriers, but one allocation holds at most {_MOST}. Allocate several."
        if spot is not None and isinstance(spot.node, ast.Call):
            given = spot.syntax.arguments(spot.node).get(1, "num_barriers")
            location = spot.at(given).location if given is not None else location
        return finding(__name__, fault, context, location, text)
    wrong = next((b for b in barriers if b.kind == "ClusterBarrier"), None)
    spot = wrong.spot(context) if wrong is not None else None
    if wrong is None or spot is None or not isinstance(spot.node, ast.Call):
        return None
    given = spot.syntax.arguments(spot.node).get(0, "collective_axes")
    if given is None or not isinstance(spot.syntax.value(given), ast.Constant):
        if "leader" not in fault.message:
            return None
        text = "A leader-tracked cluster barrier can follow a single axis of the cluster only."
        return finding(__name__, fault, context, spot.location, text)
    edits = Editor(spot.path, spot.syntax)
    set_keyword(edits, spot.node, "collective_axes", f"({spot.syntax.source(given)},)", position=0)
    text = (
        f"The axes of a cluster barrier are a tuple of names: `({spot.syntax.source(given)},)`, not "
        f"`{spot.syntax.source(given)}`, which is taken apart into its letters."
    )
    fix = safe("Make it a tuple of one name", edits)
    return finding(__name__, fault, context, spot.at(given).location, text, (), [fix])


def _barriers(fault: Fault) -> list[Allocation]:
    """The barriers among the kernel's allocations and the operands of the operation at fault."""
    found = [o.allocation for o in operands(fault).values() if o.allocation is not None]
    found += [allocation(entry) for entry in fault.facts.get("barriers") or () if isinstance(entry, Mapping)]
    return [a for a in found if "Barrier" in a.kind]


def _count(made: Allocation | None) -> int:
    text = str(made.facts.get("num_barriers", "")) if made is not None else ""
    numbers = [int(n) for n in text.strip("()").replace(" ", "").split(",") if n.isdigit()]
    total = 1
    for number in numbers:
        total *= number
    return total
