"""A wait for more arrivals than can come: the kernel hangs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .kernel import Found, Kernel, indexed, places

_ARRIVE = ("copy_gmem_to_smem", "barrier_arrive", "tcgen05_commit_arrive")


def check(kernel: Kernel) -> Iterator[Found]:
    """Single barriers of one thread whose every use stands in one straight line."""
    if kernel.threads() > 1:
        return
    for jaxpr, chain in kernel.bodies():
        for barrier in jaxpr.invars:
            expected = getattr(getattr(barrier.aval, "dtype", None), "num_arrivals", None)
            if not isinstance(expected, int) or getattr(barrier.aval, "size", 2) != 1:
                continue
            uses = [e for e in jaxpr.eqns if any(operand is barrier for operand in e.invars)]
            if any(e.primitive.name not in (*_ARRIVE, "barrier_wait") or _indexes(e, barrier) for e in uses):
                continue
            arrived: list[Any] = []
            for equation in uses:
                if equation.primitive.name in _ARRIVE:
                    arrived.append(equation)
                    continue
                if len(arrived) % expected:
                    yield Found(
                        "too-few-arrivals",
                        places((*chain, equation)),
                        {"arrivals": len(arrived), "expected": expected},
                        [{"frames": places((*chain, each)), "text": "arrives once"} for each in arrived],
                    )
                    break
                arrived.clear()


def _indexes(equation: Any, barrier: Any) -> bool:
    del barrier
    return equation.primitive.name != "copy_gmem_to_smem" and indexed(equation)
