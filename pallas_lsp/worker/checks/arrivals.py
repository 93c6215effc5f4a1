"""A wait for more arrivals than can come: the kernel hangs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import know_operands
from .kernel import Found, Kernel, indexed, places

_ARRIVE = ("copy_gmem_to_smem", "barrier_arrive", "tcgen05_commit_arrive")


def check(kernel: Kernel) -> Iterator[Found]:
    """Single barriers of one thread whose every use stands in one straight line, where they are allocated."""
    if kernel.threads() > 1:
        return
    for jaxpr, barrier, chain in kernel.allocations():
        kind = getattr(barrier.aval, "dtype", None)
        expected = getattr(kind, "num_arrivals", None)
        if not isinstance(expected, int) or "Cluster" in type(kind).__name__ or getattr(barrier.aval, "size", 2) != 1:
            continue
        uses = [e for e in jaxpr.eqns if any(operand is barrier for operand in e.invars)]
        if any(e.primitive.name not in (*_ARRIVE, "barrier_wait") or _unsure(e) for e in uses):
            continue
        arrived: list[Any] = []
        waits = 0
        for equation in uses:
            if equation.primitive.name in _ARRIVE:
                arrived.append(equation)
                continue
            waits += 1
            if len(arrived) < waits * expected:
                came = max(len(arrived) - (waits - 1) * expected, 0)
                last = arrived[len(arrived) - came :]
                related = [{"frames": places((*chain, each)), "text": "arrives"} for each in last]
                facts: dict[str, Any] = {
                    "arrivals": came,
                    "expected": expected,
                    "waits": waits,
                    "later": _later(uses, equation),
                }
                if (made := know_operands.allocation_of(barrier.aval)) is not None:
                    facts["allocation"] = know_operands.describe_allocation(made)
                yield Found("too-few-arrivals", places((*chain, equation)), facts, related)
                break


def _unsure(equation: Any) -> bool:
    """Whether a use may concern a part of the barrier, other blocks of the cluster, or happen only sometimes."""
    if any(equation.params.get(name) for name in ("collective_axes", "leader_tracked", "has_user_predicate")):
        return True
    return equation.primitive.name != "copy_gmem_to_smem" and indexed(equation)


def _later(uses: list[Any], wait: Any) -> int:
    """How many arrivals stand after a wait."""
    return sum(e.primitive.name in _ARRIVE for e in uses[uses.index(wait) :])
