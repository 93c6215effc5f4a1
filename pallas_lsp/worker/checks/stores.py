"""Shared memory handed to the asynchronous proxy without ``commit_smem`` after a store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .kernel import Found, Kernel, indexed, is_variable, memory_space, mentions, places

_CONSUMERS = {"copy_smem_to_gmem": (0,), "wgmma_ref": (1, 2), "tcgen05_mma": (1, 2)}


def check(kernel: Kernel) -> Iterator[Found]:
    """A store into a whole SMEM ref, then an asynchronous read of it, and no commit between them in the same line."""
    if kernel.backend != "mosaic_gpu":
        return
    for jaxpr, chain in kernel.bodies():
        dirty: dict[Any, Any] = {}
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            if name == "swap" and memory_space(equation.invars[0]) == "smem" and not indexed(equation):
                dirty[equation.invars[0]] = equation
            elif mentions(equation, "commit_smem"):
                dirty.clear()
            elif name in _CONSUMERS and not indexed(equation):
                for position in _CONSUMERS[name]:
                    store = _of(dirty, equation, position)
                    if store is not None:
                        yield Found(
                            "store-without-commit",
                            places((*chain, equation)),
                            {"reader": name},
                            [{"frames": places((*chain, store)), "text": "the store that is not committed"}],
                        )
                        return


def _of(known: dict[Any, Any], equation: Any, position: int) -> Any:
    operand = equation.invars[position] if position < len(equation.invars) else None
    return known.get(operand) if operand is not None and is_variable(operand) else None
