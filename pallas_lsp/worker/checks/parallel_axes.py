"""Refs that carry a value from one step to the next along an axis whose steps are declared to be independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import accumulation, numbers, writes
from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """TPU: outputs and scratch refs whose first store at a step changes what the step before left in them."""
    mapping = kernel.grid_mapping
    if mapping is None or kernel.backend != "tpu" or mapping.num_dynamic_grid_bounds:
        return
    words = _semantics(kernel)
    steps = numbers.steps_of(mapping.grid)
    if not steps or len(words) != len(mapping.grid):
        return
    carried: list[tuple[str, Any, list[numbers.Step] | None]] = [
        (f"scratch {number}", ref, None) for number, ref in enumerate(kernel.scratch())
    ]
    for number, ref, block in kernel.output_operands():
        indices = numbers.visited(block.index_map_jaxpr, steps)
        if indices is not None:
            carried.append((f"output {number}", ref, indices))
    for operand, ref, indices in carried:
        found = writes.events(kernel.body, kernel.chain, ref)
        hit = _crossing(kernel, found, steps, indices, words) if found else None
        if hit is not None:
            axis, store = hit
            related = [{"frames": places(store.chain), "text": "the accumulation"}]
            facts = {"operand": operand, "axis": axis, "grid": list(mapping.grid)}
            yield Found("parallel-axis-carries", places(kernel.chain), facts, related)
            return


def _crossing(
    kernel: Kernel, found: Sequence[Any], steps: Sequence[numbers.Step], indices: Any, words: Sequence[str]
) -> tuple[int, writes.Store] | None:
    first = accumulation.first_stores(kernel, found, steps)
    for at in range(1, len(steps)):
        store = first[at]
        if store is None or not store.own or (indices is not None and indices[at] != indices[at - 1]):
            continue
        axis = next(a for a, (one, other) in enumerate(zip(steps[at - 1], steps[at], strict=True)) if one != other)
        if words[axis] == "parallel":
            return axis, store
    return None


def _semantics(kernel: Kernel) -> list[str]:
    given = kernel.equation.params.get("compiler_params")
    given = given.get("mosaic_tpu", given.get("mosaic")) if isinstance(given, dict) else given
    words = getattr(given, "dimension_semantics", None) or ()
    return [str(getattr(word, "value", word)).rpartition(".")[2].lower() for word in words]
