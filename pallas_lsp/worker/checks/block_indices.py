"""Index maps evaluated over the grid: blocks outside the array, and parts of an output that no step writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from .. import compat
from . import numbers
from .kernel import Found, Kernel, block_size, indexed, places


def check(kernel: Kernel) -> Iterator[Found]:
    mapping = kernel.grid_mapping
    if mapping is None or mapping.num_index_operands or mapping.num_dynamic_grid_bounds or not mapping.grid:
        return
    steps = numbers.steps_of(mapping.grid)
    if not steps:
        return
    outputs = {id(block): number for number, _, block in kernel.output_operands()}
    told: set[str] = set()
    for position, block in enumerate(mapping.block_mappings):
        sizes = [block_size(dimension) for dimension in block.block_shape]
        shape = tuple(block.array_aval.shape)
        if None in sizes or len(sizes) != len(shape) or 0 in shape or 0 in sizes:
            continue
        visited = numbers.visited(block.index_map_jaxpr, steps)
        if visited is None:
            continue
        facts = kernel.operand(block)
        outside = _outside(block, visited, steps, sizes, shape)
        if outside is not None:
            # A TPU fetches the block whatever the body does with it; elsewhere only an access goes wrong, and the copy
            # engine of Mosaic GPU leaves out what is outside.
            if kernel.backend == "tpu" or (kernel.backend != "mosaic_gpu" and _accessed(kernel, position)):
                yield Found("block-outside-array", places(kernel.chain), {**facts, **outside})
        elif id(block) in outputs:
            missing = _missing(block, visited, steps, sizes, shape)
            if missing is not None and _on_purpose(kernel, outputs[id(block)], missing):
                continue
            why = str(missing and (missing["axis"], missing["first"] // sizes[missing["dimension"]], missing["blocks"]))
            if missing is not None and why not in told:  # several outputs lack the same for the same reason
                yield Found("output-never-written", places(kernel.chain), {**facts, **missing})
                told.add(why)


def _on_purpose(kernel: Kernel, number: int, missing: dict[str, Any]) -> bool:
    """Whether nothing may need what is not written: it is cut off, or written by something else."""
    use = kernel.uses[number] if number < len(kernel.uses) else None
    if use is None or use.filled:
        return use is not None
    if use.reach is not None:
        return bool(use.reach[missing["dimension"]] <= missing["first"])
    left_over = bool(missing["rest"]) and missing["blocks"] == 1
    return use.cut and not left_over


def _accessed(kernel: Kernel, position: int) -> bool:
    """Whether the body loads or stores the whole block at every step, with no mask."""
    ref = kernel.body.invars[kernel.grid_mapping.num_index_operands + position]
    return any(
        equation.primitive.name in ("get", "swap") and equation.invars[0] is ref and not indexed(equation)
        for equation in kernel.body.eqns
    )


def _outside(
    block: Any, visited: Sequence[numbers.Step], steps: Sequence[numbers.Step], sizes: Any, shape: tuple[int, ...]
) -> dict[str, Any] | None:
    for index, step in zip(visited, steps, strict=True):
        for dimension, (number, size, length) in enumerate(zip(index, sizes, shape, strict=True)):
            if number * size >= length or number < 0:
                # Whether the map gives offsets in elements: each is a multiple of the size, and fits as one.
                column = [each[dimension] for each in visited]
                offsets = size > 1 and all(each % size == 0 and 0 <= each < length for each in column)
                return {
                    "step": list(step),
                    "at": list(index),
                    "dimension": dimension,
                    "elements": offsets,
                    "needed": math.ceil(length / size),
                    "axis": _axis(block, visited, steps, dimension),
                }
    return None


def _missing(
    block: Any, visited: Sequence[numbers.Step], steps: Sequence[numbers.Step], sizes: Any, shape: tuple[int, ...]
) -> dict[str, Any] | None:
    seen = set(visited)
    blocks = [math.ceil(length / size) for length, size in zip(shape, sizes, strict=True)]
    if len(seen) >= math.prod(blocks):
        return None
    for dimension, count in enumerate(blocks):
        reached = {index[dimension] for index in seen}
        gone = [number for number in range(count) if number not in reached]
        if gone:
            last = min((gone[-1] + 1) * sizes[dimension], shape[dimension]) - 1
            return {
                "dimension": dimension,
                "first": gone[0] * sizes[dimension],
                "last": last,
                "blocks": len(gone),
                "needed": count,
                "rest": shape[dimension] % sizes[dimension],
                "axis": _axis(block, visited, steps, dimension),
            }
    return None


def _axis(block: Any, visited: Sequence[numbers.Step], steps: Sequence[numbers.Step], dimension: int) -> int | None:
    """The axis of the grid that a block index simply is; None where it is something else."""
    index_map = compat.open_jaxpr(block.index_map_jaxpr)
    for axis, variable in enumerate(index_map.invars):
        if axis < len(steps[0]) and index_map.outvars[dimension] is variable:
            return axis
    for axis in range(len(steps[0])):
        same = all(index[dimension] == step[axis] for index, step in zip(visited, steps, strict=True))
        if same and len({step[axis] for step in steps}) > 1:
            return axis
    return None
