"""
## What it does
Finds refs without a value that are given to `pl.run_state`, such as `plgpu.ACC(shape, dtype)`.

## Why it is wrong
`pl.run_state(body)(values)` starts its refs at the values that it is given and returns their final values. A type such
as `plgpu.ACC((64, 128), jnp.float32)` says how large an accumulator is, but has no value to start at. jax has no
implementation for that and raises a `NotImplementedError` without a message while it traces.

## Example
```python
def accumulate(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)

acc = pl.run_state(accumulate)(plgpu.ACC((64, 128), jnp.float32))
```

## Use instead
An accumulator that starts at a value:

```python
acc = pl.run_state(accumulate)(plgpu.ACC.init(jnp.zeros((64, 128), jnp.float32)))
```

or one that `pl.run_scoped` allocates (it starts at zero), with its value returned by the body:

```python
def accumulate(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref[...]

acc = pl.run_scoped(accumulate, plgpu.ACC((64, 128), jnp.float32))
```

Before jax 0.11 a start value has to have a WGMMA layout:
`plgpu.ACC.init(plgpu.layout_cast(jnp.zeros((64, 128), jnp.float32), plgpu.Layout.WGMMA))`.

## Fix safety
Both fixes are safe: an accumulator that nobody gave a value starts at zero in both. `pl.run_scoped` is offered only
where nothing else uses the body, since it gets a return value.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_run_state_abstract_eval` in `jax/_src/state/discharge.py`; in other versions `_run_state_lowering_rule` in
`jax/_src/pallas/mosaic_gpu/lowering.py`, "Uninitialized Refs are not supported in lowering of run_state".
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Frame, Location, Related
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared import accumulators
from pallas_lsp.rules.shared.places import Spot, call_at, follow, steps
from pallas_lsp.rules.shared.start_values import Leaf, start_values
from pallas_lsp.rules.shared.to_run_scoped import scoped
from pallas_lsp.rules.shared.uses import Use, state_use, state_value

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators", "outputs and scratch")

_DISCHARGE = "jax/_src/state/discharge.py"
_LOWERING = "jax/_src/pallas/mosaic_gpu/lowering.py"


def judge(fault: Fault, context: Context) -> Finding | None:
    if not _is_this(fault):
        return None
    given = [leaf for leaf in fault.facts.get("ref_types", ()) if isinstance(leaf, Mapping)]
    bare = [leaf for leaf in given if not leaf.get("initialized")]
    frames = context.frames(fault)
    spot = call_at(context, frames, len(frames) - 1)
    use = state_use(spot) if spot is not None else None
    leaves = _leaves(context, frames, spot, use, bare)
    place = leaves[0][1].location if leaves else context.locate(fault)
    return Finding(
        rule=rule_name(__name__),
        location=place,
        message=_message(context, place, leaves),
        stage=fault.stage,
        related=(*_related(context, leaves, spot), *context.related(fault, place)),
        fixes=_fixes(context, use, leaves, given),
        kernel=context.kernel(fault),
        arguments=context.arguments(fault),
    )


def _is_this(fault: Fault) -> bool:
    if not fault.exception.endswith("NotImplementedError"):
        return False
    if raised_in(fault, _DISCHARGE, "_run_state_abstract_eval"):
        return True
    if raised_in(fault, _LOWERING, "_run_state_lowering_rule", "_run_state_resource_estimator"):
        return "ninitialized" in fault.message
    return passed_through(fault, _DISCHARGE, "wrapped") and "ninitialized" in fault.message


def _leaves(
    context: Context,
    frames: Sequence[Frame],
    spot: Spot | None,
    use: Use | None,
    bare: Sequence[Mapping[str, Any]],
) -> list[Leaf]:
    """The refs without a value, with their expressions."""
    value = state_value(use) if use is not None else None
    if value is None and spot is not None and use is None and isinstance(spot.node, ast.Call):
        # A function that wraps run_state was called, with the refs as its one argument.
        value = spot.node.args[0] if len(spot.node.args) == 1 and not spot.node.keywords else None
    if spot is None or value is None:
        return []
    if not bare:
        return [
            ({}, spot.at(node), ()) for node in ast.walk(value) if _is_bare(spot, node) and isinstance(node, ast.expr)
        ]
    found: list[Leaf] = []
    for leaf in bare:
        at, rest = follow(context, frames, spot.at(value), steps(str(leaf.get("path", ""))))
        born = accumulators.birth(context, leaf) if rest else None
        item: Leaf = (leaf, born, ()) if born is not None else (leaf, at, rest)
        if all(item[1].location != known.location for _, known, _ in found):  # one expression may make several
            found.append(item)
    return found


def _is_bare(spot: Spot, node: ast.AST) -> bool:
    return accumulators.constructor(spot.syntax, node) is not None


def _message(context: Context, place: Location, leaves: Sequence[Leaf]) -> str:
    source = context.source(place)
    what = f"`{short(source)}`" if source else "This ref"
    for leaf, spot, _ in leaves[:1]:
        known = leaf.get("kind") == accumulators.KIND and bool(leaf.get("shape"))
        if known and accumulators.constructor(spot.syntax, spot.node) is None:
            what += f" (an accumulator of shape {accumulators.shape_text(leaf)}, {leaf.get('dtype')})"
    return (
        f"{what} has no start value, but `pl.run_state` needs one for every ref. "
        "Give it one with `plgpu.ACC.init(...)`, or allocate it with `pl.run_scoped` and return its value."
    )


def _related(context: Context, leaves: Sequence[Leaf], spot: Spot | None) -> tuple[Related, ...]:
    found = [Related(at.location, "This ref has no start value either.") for _, at, _ in leaves[1:]]
    for leaf, at, _ in leaves[:1]:
        born = accumulators.birth(context, leaf)
        if born is not None and born.location != at.location:
            found.append(Related(born.location, "The ref is made here."))
        if spot is not None and spot.path == at.path and at.node not in ast.walk(spot.node):
            found.append(Related(spot.location, "It is given to `pl.run_state` here."))
    return tuple(found)


def _fixes(
    context: Context, use: Use | None, leaves: Sequence[Leaf], given: Sequence[Mapping[str, Any]]
) -> tuple[Fix, ...]:
    if not leaves:
        return ()
    known = [leaf for leaf in given if leaf.get("kind")]
    if any(leaf.get("kind", accumulators.KIND) != accumulators.KIND for leaf, _, _ in leaves):
        return ()
    fixes = [start_values(context, leaves)]
    here = use is not None and all(at.path == use.spot.path and at.depth in (use.spot.depth, -1) for _, at, _ in leaves)
    if use is not None and known and here:
        fixes.append(scoped(use, known))
    return tuple(fix for fix in fixes if fix is not None)
