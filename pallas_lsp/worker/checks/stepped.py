"""Kernels of Mosaic GPU followed step by step: memory used too early, and waits that never end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import know_operands
from . import operations as _operations  # how operations go: it registers them
from .kernel import Found, Kernel, places
from .machine import Blocked, LostError, Machine


def check(kernel: Kernel) -> Iterator[Found]:
    """The first fault of the first block, or else of the last."""
    meshes = kernel.equation.params.get("meshes") or (kernel.equation.params.get("mesh"),)
    mesh = meshes[0]
    if kernel.backend != "mosaic_gpu" or len(meshes) != 1 or not hasattr(mesh, "num_threads"):
        return
    sizes = dict(zip(mesh.grid_names, mesh.grid, strict=False))
    if not all(isinstance(size, int) for size in sizes.values()):
        return
    cluster = dict.fromkeys(getattr(mesh, "cluster_names", ()), 0)
    blocks = [dict.fromkeys(sizes, 0), {name: size - 1 for name, size in sizes.items()}]
    for block in blocks if blocks[0] != blocks[1] else blocks[:1]:
        machine = Machine({**block, **cluster}, mesh.thread_name, mesh.num_threads or 1)
        try:
            stuck = machine.run(kernel.body, kernel.chain)
        except LostError:
            stuck = []
        if machine.hazards.found is not None:
            yield _opens_early(machine) or machine.hazards.found
            return
        if stuck:
            found = _hangs(machine, stuck)
            if found is not None:
                yield found
            return


def _opens_early(machine: Machine) -> Found | None:
    """Of a copy that is read too early: a wait that returned after others, or a copy that did not wait for the read."""
    if machine.hazards.early is None or machine.hazards.found is None:
        return None
    copy, thread = machine.hazards.early
    barrier, early = machine.awaited(copy.chain, thread) or (None, False)
    if barrier is None or barrier.memory is None:
        return None
    if not early:
        if copy.thread == thread:
            return None
        facts: dict[str, Any] = {"this": copy.name, "other": machine.hazards.found.facts["read"]}
        related = [{"frames": machine.hazards.found.frames, "text": "the use by another thread"}]
        return Found("threads-unordered", places(copy.chain), facts, related)
    arrivals = [each for phase in barrier.closed[barrier.waits[thread] - 1 :] for each in phase] + barrier.arrived
    related = [{"frames": places(each.chain), "text": "arrives"} for each in arrivals]
    facts = {"arrivals": len(arrivals), "expected": barrier.expected}
    made = know_operands.allocation_of(barrier.memory.aval)
    if made is not None:
        facts["allocation"] = know_operands.describe_allocation(made)
    return Found("too-many-arrivals", places(barrier.waited[thread]), facts, related)


def _hangs(machine: Machine, stuck: list[Blocked]) -> Found | None:
    """The wait that is to blame: of several, one for a barrier that something arrived on, or that nothing ever does."""
    if any(each.barrier.memory is None for each in stuck):
        return None
    first = min(stuck, key=_likely)
    arrived = first.barrier.arrived if first.wait == len(first.barrier.closed) else []
    related = [{"frames": places(each.chain), "text": "arrives"} for each in arrived]
    facts: dict[str, Any] = {
        "arrivals": len(arrived),
        "expected": first.barrier.expected,
        "waits": first.wait + 1,
        "later": 0,
        "threads": len(machine.threads),
    }
    assert first.barrier.memory is not None
    made = know_operands.allocation_of(first.barrier.memory.aval)
    if made is not None:
        facts["allocation"] = know_operands.describe_allocation(made)
    return Found("too-few-arrivals", places(first.chain), facts, related)


def _likely(blocked: Blocked) -> int:
    if 0 < len(blocked.barrier.arrived) < blocked.barrier.expected:
        return 0
    return 1 if not blocked.barrier.closed and not blocked.barrier.arrived else 2


__all__ = ["_operations", "check"]
