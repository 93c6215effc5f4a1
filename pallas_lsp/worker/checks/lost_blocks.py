"""Output blocks that several steps of the grid store to, each from other input: what the last one stores is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import compat
from . import numbers
from .kernel import Found, Kernel, indexed, is_variable, places, producers

_SUMS = ("reduce_sum", "dot_general")


def check(kernel: Kernel) -> Iterator[Found]:
    """A whole block that is stored in every step, from inputs alone, where only the inputs' blocks change."""
    mapping = kernel.grid_mapping
    if mapping is None or kernel.backend == "mosaic_gpu" or mapping.num_dynamic_grid_bounds:
        return
    steps = numbers.steps_of(mapping.grid)
    for number, ref, block in kernel.output_operands() if steps else ():
        store = _only_store(kernel.body, ref)
        dropped = number < len(kernel.uses) and kernel.uses[number].dropped
        indices = numbers.visited(block.index_map_jaxpr, steps or ())
        if store is None or dropped or indices is None or steps is None:
            continue
        inputs = _inputs(kernel, store.invars[1])
        axes = still(mapping.grid, steps, indices)
        for position in inputs or ():
            given = mapping.block_mappings[position]
            read = numbers.visited(given.index_map_jaxpr, steps)
            moved = set(axes) - set(still(mapping.grid, steps, read)) if read is not None else set()
            if moved:
                nearest = next(producers(kernel.body, store.invars[1]), None)
                facts = {
                    **kernel.operand(block),
                    "axes": sorted(moved),
                    "input": position,
                    "sums": nearest is not None and _sums(kernel.body, store.invars[1]),
                }
                yield Found("output-block-overwritten", places((*kernel.chain, store)), facts)
                return


def still(grid: Sequence[int], steps: Sequence[numbers.Step], indices: Sequence[numbers.Step]) -> list[int]:
    """The axes of the grid along which a block index never changes."""
    by_step = dict(zip(steps, indices, strict=True))
    found = []
    for axis, size in enumerate(grid):
        moved = (by_step[(*step[:axis], 0, *step[axis + 1 :])] == index for step, index in by_step.items())
        if size > 1 and all(moved):
            found.append(axis)
    return found


def _only_store(body: Any, ref: Any) -> Any:
    """The one use of a ref: a store of the whole, outside of branches and loops, whose earlier value nothing takes."""
    uses = [equation for equation in body.eqns if any(operand is ref for operand in equation.invars)]
    if len(uses) != 1 or uses[0].primitive.name != "swap" or indexed(uses[0]) or uses[0].invars[0] is not ref:
        return None
    old = uses[0].outvars[0]
    taken = any(operand is old for equation in body.eqns for operand in equation.invars)
    return None if taken or not is_variable(uses[0].invars[1]) else uses[0]


def _inputs(kernel: Kernel, value: Any) -> list[int] | None:
    """The inputs that a value is worked out from; None where it may come from anything that steps share."""
    mapping = kernel.grid_mapping
    first = mapping.num_index_operands
    refs = {variable: n for n, variable in enumerate(kernel.body.invars[first : first + mapping.num_inputs])}
    if value in kernel.body.invars:
        return None
    found: set[int] = set()
    for equation in producers(kernel.body, value):
        for operand in equation.invars:
            if not is_variable(operand) or not _is_ref(operand):
                continue
            if operand not in refs:
                return None
            found.add(refs[operand])
    return sorted(found)


def _is_ref(variable: Any) -> bool:
    return "Ref" in type(variable.aval).__name__


def _sums(body: Any, value: Any) -> bool:
    """Whether a value is a sum, or one in another type or shape."""
    by_output = {out: equation for equation in body.eqns for out in equation.outvars}
    for _ in range(10):
        equation = by_output.get(value)
        if equation is None:
            return False
        name = equation.primitive.name
        if name in _SUMS:
            return True
        inner = list(compat.sub_jaxprs(equation))
        if len(inner) == 1 and name in ("pjit", "jit"):
            return _sums(inner[0], inner[0].outvars[0])
        if name not in ("broadcast_in_dim", "reshape", "convert_element_type", "squeeze"):
            return False
        value = equation.invars[0]
    return False
