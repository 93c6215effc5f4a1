"""A reduction over a block that reaches past the end of its array: what stands there is reduced with the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import compat
from . import numbers
from .kernel import Found, Kernel, block_size, indexed, is_variable, places

_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin")
_MASKS = ("select_n", "clamp", "cond", "while", "scan")


def check(kernel: Kernel) -> Iterator[Found]:
    """A reduction of a whole input block along a dimension that its size does not divide, with no mask anywhere."""
    mapping = kernel.grid_mapping
    if mapping is None or kernel.backend == "mosaic_gpu":  # there the copy engine fills with zeros
        return
    partial = dict(_partial(kernel))
    if not partial:
        return
    found = _reduced(kernel, partial)
    if found is None:
        return
    equation, parts = found
    facts = {
        "reduction": equation.primitive.name,
        "parts": [_part(kernel, partial[ref][axis], axis) for ref, axis in parts],
    }
    yield Found("reduction-over-padding", places((*kernel.chain, equation)), facts)


def _part(kernel: Kernel, place: tuple[Any, int], axis: int) -> dict[str, Any]:
    """``dimension`` counts in the array and ``axis`` in the block that the body sees."""
    block, dimension = place
    size = block_size(block.block_shape[dimension]) or 1
    length = block.array_aval.shape[dimension]
    return {
        **kernel.operand(block),
        "dimension": dimension,
        "axis": axis,
        "size": size,
        "length": length,
        "rest": length % size,
        "grid_axis": _grid_axis(kernel, block, dimension),
    }


def _partial(kernel: Kernel) -> Iterator[tuple[Any, dict[int, tuple[Any, int]]]]:
    """The refs of inputs whose last block, which some step has, reaches past the end: by dimension of the block."""
    mapping = kernel.grid_mapping
    if mapping.num_index_operands or mapping.num_dynamic_grid_bounds:
        return
    steps = numbers.steps_of(mapping.grid)
    for number in range(mapping.num_inputs) if steps else ():
        block = mapping.block_mappings[number]
        shape = tuple(block.array_aval.shape)
        sizes = [block_size(dimension) for dimension in block.block_shape]
        if None in sizes or len(sizes) != len(shape) or 0 in sizes:
            continue
        visited = numbers.visited(block.index_map_jaxpr, steps or ())
        kept = [d for d, each in enumerate(block.block_shape) if isinstance(each, int) or _blocked(each)]
        found = {}
        for axis, d in enumerate(kept):
            whole, rest = divmod(shape[d], sizes[d] or 1)
            if rest and any(each[d] == whole for each in visited or ()):
                found[axis] = (block, d)
        if found:
            yield kernel.body.invars[mapping.num_index_operands + number], found


def _blocked(dimension: Any) -> bool:
    return type(dimension).__name__ == "Blocked"


def _grid_axis(kernel: Kernel, block: Any, dimension: int) -> int | None:
    """The axis of the grid whose index is the block's index along a dimension."""
    steps = numbers.steps_of(kernel.grid_mapping.grid) or []
    visited = numbers.visited(block.index_map_jaxpr, steps) or []
    for axis in range(len(kernel.grid_mapping.grid)):
        if all(index[dimension] == step[axis] for step, index in zip(steps, visited, strict=True)):
            return axis
    return None


def _reduced(
    kernel: Kernel, partial: dict[Any, dict[int, tuple[Any, int]]]
) -> tuple[Any, list[tuple[Any, int]]] | None:
    """The reduction that whole reads come to by elementwise steps alone, and (ref, axis) for each operand of it."""
    carried: dict[Any, Any] = {}
    for equation in kernel.body.eqns:
        name = equation.primitive.name
        if name == "get" and equation.invars[0] in partial and not indexed(equation):
            carried[equation.outvars[0]] = equation.invars[0]
            continue
        operands = [v for v in equation.invars if is_variable(v) and v in carried]
        if not operands:
            continue
        hit = _contracted(equation, carried, partial)
        if hit is not None and not _masked_afterwards(kernel.body, equation):
            return equation, hit
        if name in _MASKS or any(compat.sub_jaxprs(equation)):
            continue
        same = all(tuple(out.aval.shape) == tuple(operands[0].aval.shape) for out in equation.outvars)
        if same and all(_harmless(v, carried) for v in equation.invars):
            carried.update(dict.fromkeys(equation.outvars, carried[operands[0]]))
    return None


def _harmless(variable: Any, carried: dict[Any, Any]) -> bool:
    """Whether an operand is no mask: another part of the block, or a single number."""
    return not is_variable(variable) or variable in carried or not variable.aval.shape


def _contracted(
    equation: Any, carried: dict[Any, Any], partial: dict[Any, dict[int, tuple[Any, int]]]
) -> list[tuple[Any, int]] | None:
    """(ref, axis) for each operand where an equation sums over what is past the end of an array."""
    name = equation.primitive.name
    if name in _REDUCTIONS:
        ref = carried.get(equation.invars[0])
        for axis in equation.params.get("axes", ()):
            if ref is not None and axis in partial[ref]:
                return [(ref, axis)]
    if name == "dot_general" and all(is_variable(v) and v in carried for v in equation.invars[:2]):
        (left, right), _ = equation.params["dimension_numbers"]
        a, b = (carried[v] for v in equation.invars[:2])
        for one, other in zip(left, right, strict=True):
            if one in partial[a] and other in partial[b]:
                return [(a, one), (b, other)]
    return None


def _masked_afterwards(body: Any, reduction: Any) -> bool:
    """Whether the result may be used at some steps only."""
    derived: set[Any] = set(reduction.outvars)
    for equation in body.eqns:
        if any(is_variable(v) and v in derived for v in equation.invars):
            if equation.primitive.name in _MASKS or any(compat.sub_jaxprs(equation)):
                return True
            derived.update(equation.outvars)
    return False
