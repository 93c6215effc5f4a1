"""Copies that are started and never waited for, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import compat
from .kernel import Found, Kernel, holders, memory_space, mentions, places


def check(kernel: Kernel) -> Iterator[Found]:
    """TPU: ``dma_start`` with a semaphore that the kernel allocates and nothing else touches; ``dma_wait`` likewise.

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
        touching = [(program, e) for program, variable in held for e in program.eqns if _touches(e, variable)]
        found = list(_unmatched(kernel, touching, chain))
        slots = _slots(touching) if not found and len(held) == 1 else None
        for group in slots.values() if slots else ():
            found += _unmatched(kernel, group, chain)
        yield from found


def _unmatched(kernel: Kernel, touching: Sequence[tuple[Any, Any]], chain: tuple[Any, ...]) -> Iterator[Found]:
    """Copies that are started with a semaphore and not waited for, or waited for and not started."""
    names = {equation.primitive.name for _, equation in touching}
    check = {"dma_start": "copy-never-waited", "dma_wait": "copy-never-started"}
    if len(names) == 1 and (name := next(iter(names))) in check:
        program, equation = touching[0]
        around = next((c for body, c in kernel.bodies() if body is program), chain)
        yield Found(check[name], places((*around, equation)), {"copy": name})


def _slots(touching: Sequence[tuple[Any, Any]]) -> dict[str, list[tuple[Any, Any]]] | None:
    """What touches each semaphore of an array, where all indices are numbers; None where one is not."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for program, equation in touching:
        if equation.primitive.name not in ("dma_start", "dma_wait"):
            return None
        parts = equation.params["tree"].unflatten(equation.invars)
        refs = [(getattr(part, "ref", part), part) for part in parts]
        views = [part for ref, part in refs if hasattr(ref, "aval") and "semaphore" in memory_space(ref)]
        if len(views) != 1 or len(getattr(views[0], "transforms", ())) != 1:
            return None
        indices = getattr(views[0].transforms[0], "indices", ())
        numbers = [getattr(index, "val", index) for index in indices]
        if not numbers or not all(hasattr(number, "__index__") for number in numbers):
            return None
        found.setdefault(str([int(number) for number in numbers]), []).append((program, equation))
    return found


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
