"""Copies that are started and never waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import compat
from .kernel import Found, Kernel, holders, memory_space, mentions, places


def check(kernel: Kernel) -> Iterator[Found]:
    """TPU: ``dma_start`` with a semaphore that the kernel allocates and nothing else of it touches.

    Mosaic GPU: ``copy_smem_to_gmem`` in a kernel that never waits for such copies; its SMEM is given back under way.
    """
    if kernel.backend == "mosaic_gpu":
        yield from _to_gmem(kernel)
    for jaxpr, semaphore, chain in kernel.allocations():
        if "semaphore" not in memory_space(semaphore):
            continue
        held = holders(jaxpr, semaphore)
        if held is None:
            continue
        starts = [(program, e) for program, variable in held for e in program.eqns if _touches(e, variable)]
        if starts and all(e.primitive.name == "dma_start" for _, e in starts):
            for program, equation in starts[:1]:
                around = next((c for body, c in kernel.bodies() if body is program), chain)
                yield Found("copy-never-waited", places((*around, equation)), {"copy": "dma_start"})


def _touches(equation: Any, variable: Any) -> bool:
    return any(operand is variable for operand in equation.invars) and not any(compat.sub_jaxprs(equation))


def _to_gmem(kernel: Kernel) -> Iterator[Found]:
    copies = []
    for equation, chain in kernel.equations():
        if equation.primitive.name == "copy_smem_to_gmem":
            copies.append(chain)
        elif not any(compat.sub_jaxprs(equation)) and mentions(equation, "wait_smem_to_gmem"):
            return
    if copies:
        yield Found("copy-never-waited", places(copies[-1]), {"copy": "copy_smem_to_gmem"})
