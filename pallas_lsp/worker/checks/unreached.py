"""Outputs that the body stores to only under conditions that are false at every step that has one of their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import numbers, writes
from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """Blocks of outputs (that no input is aliased to) for which no step stores anything, as far as the grid tells."""
    mapping = kernel.grid_mapping
    if mapping is None or kernel.backend == "mosaic_gpu" or mapping.num_dynamic_grid_bounds:
        return
    steps = numbers.steps_of(mapping.grid)
    for number, ref, block in kernel.output_operands() if steps else ():
        use = kernel.uses[number] if number < len(kernel.uses) else None
        found = writes.events(kernel.body, kernel.chain, ref)
        indices = numbers.visited(block.index_map_jaxpr, steps or ())
        if use is None or use.filled or use.cut or use.reach or use.dropped or not found or indices is None:
            continue
        taken = writes.taken(kernel.body, mapping.grid, steps or (), found)
        reached = [_may_store(found, taken, at) for at in range(len(indices))]
        written = {index for index, stored in zip(indices, reached, strict=True) if stored}
        missing = [at for at, index in enumerate(indices) if index not in written]
        if missing and steps:
            store = writes.stores(found)[0]
            facts = {
                **kernel.operand(block),
                "stores": "conditional",
                "step": list(steps[missing[0]]),
                "at": list(indices[missing[0]]),
                "missing": len({indices[at] for at in missing}),
                "blocks": len(set(indices)),
                "never": not any(reached),
            }
            yield Found("output-never-written", places(store.chain), facts)


def _may_store(found: Sequence[Any], taken: dict[int, list[int] | None], at: int) -> bool:
    """Whether a store may run at a step."""
    for event in found:
        if isinstance(event, writes.Store):
            return True
        if isinstance(event, writes.Loop):
            inner = _may_store(event.events, taken, at)
        else:
            chosen = taken.get(id(event))
            branches = event.branches
            if chosen is not None:
                branches = [branches[min(max(chosen[at], 0), len(branches) - 1)]]
            inner = any(_may_store(branch, taken, at) for branch in branches)
        if inner:
            return True
    return False
