"""In-place launches in which a step reads a block of the shared memory that an earlier step has written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import numbers
from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """An input and an output that share memory, with blocks by different index maps that meet at different steps."""
    mapping = kernel.grid_mapping
    if mapping is None or kernel.backend == "mosaic_gpu" or mapping.num_dynamic_grid_bounds:
        return
    steps = numbers.steps_of(mapping.grid)
    for source, target in kernel.equation.params.get("input_output_aliases") or ():
        position = source - mapping.num_index_operands
        if not steps or not 0 <= position < mapping.num_inputs:
            continue
        given, made = mapping.block_mappings[position], mapping.block_mappings[mapping.num_inputs + target]
        read = numbers.visited(given.index_map_jaxpr, steps)
        written = numbers.visited(made.index_map_jaxpr, steps)
        same = _sizes(given) == _sizes(made) and _in_blocks(given) and _in_blocks(made)
        if read is None or written is None or read == written or not same or not _is_read(kernel, position):
            continue
        stored: dict[numbers.Step, int] = {}
        for at, index in enumerate(read):
            fetched = at == 0 or read[at - 1] != index
            if fetched and index in stored:
                facts = {
                    **kernel.operand(given),
                    "output": target,
                    "at": list(index),
                    "written": list(steps[stored[index]]),
                    "step": list(steps[at]),
                }
                yield Found("aliased-block-overwritten", places(kernel.chain), facts)
                return
            stored.setdefault(written[at], at)


def _sizes(block: Any) -> list[str]:
    return [str(size) for size in block.block_shape]


def _in_blocks(block: Any) -> bool:
    """Whether the operand comes to the body in blocks, and is not left where it is."""
    space = str(getattr(block.transformed_block_aval, "memory_space", "") or "").lower()
    return not any(word in space for word in ("any", "hbm", "semaphore"))


def _is_read(kernel: Kernel, position: int) -> bool:
    ref = kernel.body.invars[kernel.grid_mapping.num_index_operands + position]
    return any(operand is ref for equation in kernel.body.eqns for operand in equation.invars)
