"""Refs that are added to before they have a value: nothing starts them, or not at each of their blocks' first steps.

On TPU a block of an output stays in VMEM while consecutive steps of the grid have the same block index; what it holds
when its block is come back to is not loaded again.  Elsewhere steps run at the same time, and none sees another's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import numbers, writes
from .kernel import Found, Kernel, places
from .lost_blocks import still


def check(kernel: Kernel) -> Iterator[Found]:
    """Outputs (that no input is aliased to) and scratch refs of a ``pallas_call``."""
    mapping = kernel.grid_mapping
    if mapping is None or kernel.backend == "mosaic_gpu":
        return
    steps = None if mapping.num_dynamic_grid_bounds else numbers.steps_of(mapping.grid)
    for number, ref, block in kernel.output_operands():
        found = writes.events(kernel.body, kernel.chain, ref)
        if found and steps:
            yield from _output(kernel, number, block, found, steps)
        elif found:
            yield from _never_started(f"output {number}", found)
    for number, ref in enumerate(kernel.scratch()):
        found = writes.events(kernel.body, kernel.chain, ref)
        if found and steps:
            first = first_stores(kernel, found, steps[:1])[0]
            if first is not None and first.own:
                yield _unstarted(f"scratch {number}", first, found, steps[0], _summed(kernel, steps))
        elif found:
            yield from _never_started(f"scratch {number}", found)


def _never_started(operand: str, found: Sequence[Any]) -> Iterator[Found]:
    """For a grid that is not known: every store depends on the ref's own value."""
    every = writes.stores(found)
    if all(store.own for store in every):
        yield Found(
            "accumulator-without-start", places(every[0].chain), {"operand": operand, "starts": False, "axes": None}
        )


def _output(
    kernel: Kernel, number: int, block: Any, found: Sequence[Any], steps: Sequence[numbers.Step]
) -> Iterator[Found]:
    indices = numbers.visited(block.index_map_jaxpr, steps)
    if indices is None:
        yield from _never_started(f"output {number}", found)
        return
    first = first_stores(kernel, found, steps)
    in_order = kernel.backend != "triton"
    seen: set[numbers.Step] = set()
    before: numbers.Step | None = None
    for step, index, store in zip(steps, indices, first, strict=True):
        if in_order and index == before:
            continue
        before = index
        if store is not None and store.own:
            if index not in seen:
                yield _unstarted(
                    f"output {number}", store, found, step, still(kernel.grid_mapping.grid, steps, indices)
                )
                return
            facts = {
                **kernel.operand(block),
                "step": list(step),
                "at": list(index),
                "axes": still(kernel.grid_mapping.grid, steps, indices),
            }
            related = [{"frames": places(store.chain), "text": "the accumulation"}]
            if in_order:
                yield Found("accumulation-not-innermost", places(kernel.chain), facts, related)
            else:
                yield Found("accumulation-across-programs", places(store.chain), facts)
            return
        seen.add(index)


def _summed(kernel: Kernel, steps: Sequence[numbers.Step]) -> list[int]:
    """The axes of the grid along which no output's block index changes."""
    grid = kernel.grid_mapping.grid
    axes = set(range(len(grid)))
    for _, _, block in kernel.output_operands():
        indices = numbers.visited(block.index_map_jaxpr, steps)
        axes &= set(still(grid, steps, indices)) if indices is not None else set()
    return sorted(axes)


def _unstarted(
    operand: str, store: writes.Store, found: Sequence[Any], step: numbers.Step, axes: Sequence[int]
) -> Found:
    starts = [each for each in writes.stores(found) if not each.own]
    related = [{"frames": places(each.chain), "text": "the start value"} for each in starts[:1]]
    facts = {"operand": operand, "starts": bool(starts), "step": list(step), "axes": list(axes)}
    return Found("accumulator-without-start", places(store.chain), facts, related)


def first_stores(kernel: Kernel, found: Sequence[Any], steps: Sequence[numbers.Step]) -> list[writes.Store | None]:
    """The store that comes first at each step; None where there is none for sure."""
    taken = writes.taken(kernel.body, kernel.grid_mapping.grid, steps, found)
    return [_earliest(found, taken, at) for at in range(len(steps))]


def _earliest(found: Sequence[Any], taken: dict[int, list[int] | None], at: int) -> writes.Store | None:
    for event in found:
        if isinstance(event, writes.Store):
            return event
        if isinstance(event, writes.Loop):
            inner = _earliest(event.events, taken, at)
            if inner is not None and (event.runs or not inner.own):
                return inner
            continue
        chosen = taken.get(id(event))
        if chosen is not None:
            inner = _earliest(event.branches[min(max(chosen[at], 0), len(event.branches) - 1)], taken, at)
            if inner is not None:
                return inner
            continue
        # Which branch runs is not known: one that may start the ref counts as run, one that may not does not.
        firsts = [_earliest(branch, taken, at) for branch in event.branches]
        start = next((store for store in firsts if store is not None and not store.own), None)
        if start is not None:
            return start
        if firsts and all(store is not None for store in firsts):
            return firsts[0]
    return None
