"""Index maps evaluated over the grid: blocks outside the array, parts that no step writes, accumulations torn apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from .. import compat
from .kernel import Found, Kernel, places

MOST_STEPS = 4096


def check(kernel: Kernel) -> Iterator[Found]:
    mapping = kernel.grid_mapping
    if mapping is None or mapping.num_index_operands or not mapping.grid:
        return
    grid = mapping.grid
    if not all(isinstance(size, int) for size in grid) or math.prod(grid) > MOST_STEPS:
        return
    steps = list(itertools.product(*(range(size) for size in grid)))
    outputs = {id(block): ref for _, ref, block in kernel.output_operands()}
    for block in mapping.block_mappings:
        sizes = [_size(dimension) for dimension in block.block_shape]
        shape = tuple(block.array_aval.shape)
        if None in sizes or len(sizes) != len(shape):
            continue
        visited = _visited(block, steps)
        if visited is None:
            continue
        facts = {
            "operand": str(block.origin),
            "array": compat.notation(block.array_aval),
            "block": sizes,
            "grid": list(grid),
            "index_map": _source(block),
        }
        outside = _outside(visited, steps, sizes, shape)
        if outside is not None:
            yield Found("block-outside-array", places(kernel.chain), {**facts, **outside})
        elif id(block) in outputs:
            missing = _missing(visited, sizes, shape)
            if missing is not None:
                yield Found("output-never-written", places(kernel.chain), {**facts, **missing})
            elif kernel.backend == "tpu" and _reads(kernel, outputs[id(block)]) and _torn(visited):
                yield Found("accumulation-not-innermost", places(kernel.chain), facts)


def _size(dimension: Any) -> int | None:
    """Elements that one step of a block index moves by; None for what is not known."""
    if isinstance(dimension, int):
        return dimension
    name = type(dimension).__name__
    if name == "Blocked":
        size = dimension.block_size
        return size if isinstance(size, int) else None
    return 1 if name == "Squeezed" or dimension is None else None


def _visited(block: Any, steps: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]] | None:
    """The block index at each step, for an index map that is arithmetic on the grid's indices alone."""
    import jax
    import numpy  # type: ignore[import-not-found,unused-ignore]

    jaxpr = block.index_map_jaxpr
    function = compat.jaxpr_function(compat.closed(jaxpr))
    columns = [numpy.asarray(column, numpy.int32) for column in zip(*steps, strict=True)]
    if len(columns) != len(compat.open_jaxpr(jaxpr).invars):
        return None
    with jax.ensure_compile_time_eval():
        results = [numpy.broadcast_to(numpy.asarray(out), (len(steps),)) for out in jax.vmap(function)(*columns)]
    return [tuple(int(value) for value in row) for row in zip(*results, strict=True)]


def _outside(
    visited: Sequence[tuple[int, ...]], steps: Sequence[tuple[int, ...]], sizes: Any, shape: tuple[int, ...]
) -> dict[str, Any] | None:
    for index, step in zip(visited, steps, strict=True):
        for dimension, (number, size, length) in enumerate(zip(index, sizes, shape, strict=True)):
            if number * size >= length or number < 0:
                return {"step": list(step), "index": list(index), "dimension": dimension}
    return None


def _missing(visited: Sequence[tuple[int, ...]], sizes: Any, shape: tuple[int, ...]) -> dict[str, Any] | None:
    seen = set(visited)
    blocks = [math.ceil(length / size) for length, size in zip(shape, sizes, strict=True)]
    if len(seen) >= math.prod(blocks):
        return None
    for dimension, count in enumerate(blocks):
        reached = {index[dimension] for index in seen}
        gone = [number for number in range(count) if number not in reached]
        if gone:
            start = gone[0] * sizes[dimension]
            return {"dimension": dimension, "first": start, "last": shape[dimension] - 1, "blocks": len(gone)}
    return None


def _torn(visited: Sequence[tuple[int, ...]]) -> bool:
    """Whether a block is left and come back to."""
    left: set[tuple[int, ...]] = set()
    current = None
    for index in visited:
        if index != current:
            if index in left:
                return True
            if current is not None:
                left.add(current)
            current = index
    return False


def _reads(kernel: Kernel, ref: Any) -> bool:
    return any(e.primitive.name in ("get", "addupdate") and e.invars[0] is ref for e in kernel.body.eqns)


def _source(block: Any) -> str:
    info = getattr(compat.open_jaxpr(block.index_map_jaxpr), "debug_info", None)
    return str(getattr(info, "func_src_info", None) or "")
