"""
## What it does
Finds barriers and other refs taken for each other: waiting on a ref that is no barrier, giving a copy another ref as
its barrier, reading or storing a barrier like an array.

## Why it is wrong
`plgpu.barrier_wait`, `plgpu.barrier_arrive` and the copies into SMEM work on what `plgpu.Barrier(...)` allocates. A
barrier has no value: it cannot be read, stored or computed with. Mostly the parameters of the body stand in another
order than the scratch types.

## Example
```python
def body(x_gmem, o_gmem, barrier, x_smem):   # scratch_types=[plgpu.SMEM(...), plgpu.Barrier()]
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
```

## Use instead
```python
def body(x_gmem, o_gmem, x_smem, barrier):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
```

## Fix safety
The fixes are suggestions: another barrier of the same function, two parameters exchanged, or a wait where a barrier is
read for nothing.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
jax does not check it: it fails in `_barrier_wait_lowering`, `_barrier_arrive_lowering`, `_copy_gmem_to_smem_lowering`
(`jax/_src/pallas/mosaic_gpu/primitives.py`), `_handle_transforms` (`lowering.py`) and `FragmentedArray.load_strided`
(`jax/experimental/mosaic/gpu/fragmented_array.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_copies import barriers_in, copy_of
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import (
    LOWERING,
    MGPU,
    PLGPU,
    PRIMITIVES,
    Operand,
    argument,
    operands,
    place,
    quoted,
)
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("barriers",)
SPECIFICITY = 54
SITES = (
    (PRIMITIVES, "_barrier_wait_lowering"),
    (PRIMITIVES, "_barrier_arrive_lowering"),
    (PRIMITIVES, "_copy_gmem_to_smem_lowering"),
    (LOWERING, "_handle_transforms"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray.load_strided"),
)
_PROMOTED = "dtype=BarrierType("
_ON_BARRIERS = ("barrier_wait", "barrier_arrive", "copy_gmem_to_smem", "tcgen05_mma", "tcgen05_commit_arrive")
_ON_ARRAYS = ("get", "swap", "addupdate", "load", "masked_load", "masked_swap")


def judge(fault: Fault, context: Context) -> Finding | None:
    equation = fault.equation
    copy = copy_of(fault)
    if copy is not None and "barrier" in (copy.src.dtype, copy.dst.dtype):
        return _copied(fault, context, "src" if copy.src.dtype == "barrier" else "dst")
    mismatch = fault.facts.get("mismatch")
    stored = mismatch.get("value") if isinstance(mismatch, Mapping) else None
    if _PROMOTED in fault.message or (isinstance(stored, Mapping) and stored.get("dtype") == "barrier"):
        return _computed(fault, context)
    if equation is None or fault.stage != "lower":
        return None
    found = operands(fault)
    name = equation.primitive.removesuffix("_p")
    if name in _ON_BARRIERS:
        key = "barrier" if "barrier" in found else "ref" if name.startswith("barrier") else ""
        given = found.get(key)
        if given is None or _is_barrier(given) or given.space == "value":
            return None
        source = quoted(context, fault, "barrier", "This")
        what = f"{given.type} in {given.space.upper()}"
        text = f"{source} is no barrier but a ref, {what}: `{name}` needs what `plgpu.Barrier(...)` allocates."
        related = given.related(context, "It is allocated here.")
        fixes = _others(argument(context, fault, "barrier"))
        return finding(__name__, fault, context, place(context, fault, "barrier"), text, related, fixes)
    if name in _ON_ARRAYS:
        given = next((o for o in found.values() if _is_barrier(o)), None)
        if given is None:
            return None
        related = given.related(context, "It is allocated here.")
        return _valued(fault, context, context.locate(fault), related)
    return None


def _valued(fault: Fault, context: Context, location: Location, related: Iterable[Related] = ()) -> Finding:
    text = (
        f"`{short(context.source(location), 40)}` reads or stores a barrier, which has no value: wait on it with "
        "`plgpu.barrier_wait`, arrive on it with `plgpu.barrier_arrive`."
    )
    return finding(__name__, fault, context, location, text, related, [_wait(context, location)])


def _computed(fault: Fault, context: Context) -> Finding:
    """A barrier that is computed with, which jax notices as a type that no number has."""
    location = context.locate(fault)
    syntax, node = context.syntax(location.path), context.node(location)
    names = fault.facts.get("names")
    statement = syntax.statement(node) if syntax is not None and node is not None else None
    for part in ast.walk(statement) if statement is not None else ():
        value = part.value if isinstance(part, ast.Subscript) else part
        known = names.get(value.id) if isinstance(value, ast.Name) and isinstance(names, Mapping) else None
        if isinstance(known, Mapping) and known.get("dtype") == "barrier" and syntax is not None:
            location = Location(location.path, syntax.range(part))
            break
    return _valued(fault, context, location)


def _copied(fault: Fault, context: Context, side: str) -> Finding:
    """A barrier where a copy takes memory: mostly two parameters of the body in the wrong order."""
    source = quoted(context, fault, side, "This")
    found = operands(fault)
    text = (
        f"{source} is a barrier, not memory: the parameters of the body come in the order of the scratch types, and "
        "this one stands where `plgpu.Barrier(...)` does."
    )
    related = found[side].related(context, "It is allocated here.")
    barrier, other = argument(context, fault, side), argument(context, fault, "barrier")
    fixes = [_exchanged(barrier, other)] if barrier is not None and other is not None else []
    return finding(__name__, fault, context, place(context, fault, side), text, related, fixes)


def _exchanged(one: Spot, other: Spot) -> Fix | None:
    """The two parameters of one function exchanged."""
    syntax = one.syntax
    found = [syntax.binding(s.node) for s in (one, other) if isinstance(s.node, ast.Name) and s.path == one.path]
    parameters = [b.node for b in found if b is not None and isinstance(b.node, ast.arg)]
    if len(parameters) != 2 or syntax.function(parameters[0]) is not syntax.function(parameters[1]):
        return None
    if any(p.annotation is not None for p in parameters):
        return None
    edits = Editor(one.path, syntax)
    first, second = parameters
    edits.replace(first, second.arg)
    edits.replace(second, first.arg)
    return suggested(f"Exchange the parameters `{first.arg}` and `{second.arg}`", edits)


def _others(given: Spot | None) -> Iterator[Fix | None]:
    """The barriers that the same function names elsewhere."""
    function = given.syntax.function(given.node) if given is not None else None
    if given is None or function is None:
        return
    for name in barriers_in(given.syntax, function):
        if name != given.source:
            edits = Editor(given.path, given.syntax)
            edits.replace(given.node, name)
            yield suggested(f"Use the barrier `{name}`", edits)


def _wait(context: Context, location: Location) -> Fix | None:
    """A barrier that is read, where nothing is done with what was read: a wait was meant."""
    syntax, node = context.syntax(location.path), context.node(location)
    if syntax is None or not isinstance(node, ast.Subscript) or not isinstance(syntax.parent(node), ast.Expr):
        return None
    edits = Editor(location.path, syntax)
    name = edits.spell(f"{PLGPU}.barrier_wait", node, ALIAS)
    if name is None:
        return None
    edits.replace(node, f"{name}({syntax.source(node.value)})")
    return suggested("Wait on it", edits)


def _is_barrier(operand: Operand) -> bool:
    return "barrier" in operand.dtype.lower()
