"""Shared memory handed to the asynchronous proxy without ``commit_smem`` after a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import order
from .kernel import Found, Kernel, indexed, memory_space, places

_CONSUMERS = ("copy_smem_to_gmem", "wgmma_ref", "tcgen05_mma")


def check(kernel: Kernel) -> Iterator[Found]:
    """A store into a whole SMEM ref, then an asynchronous read of it, and no commit between them."""
    if kernel.backend != "mosaic_gpu":
        return

    def starts(equation: Any) -> Sequence[Any]:
        stores = equation.primitive.name == "swap" and memory_space(equation.invars[0]) == "smem"
        return [equation.invars[0]] if stores and not indexed(equation) else ()

    readers = {name: order.READERS[name] for name in _CONSUMERS}
    for read, store in order.uses(kernel, order.Order(starts, ("commit_smem",), readers)):
        related = [{"frames": places(store), "text": "the store that is not committed"}]
        yield Found("store-without-commit", places(read), {"reader": read[-1].primitive.name}, related)
        return
