"""Shared memory written while the copy engine or the tensor core still reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import order
from .kernel import Found, Kernel, is_variable, memory_space, places

_ENDS = {
    "copy_smem_to_gmem": ("wait_smem_to_gmem",),
    "wgmma_ref": ("wgmma_wait", "accumulator"),
}
"""The asynchronous readers of SMEM, and the words of the primitives that wait for them."""


def check(kernel: Kernel) -> Iterator[Found]:
    """A whole SMEM ref that is read asynchronously and then written without a wait, in the next iteration too."""
    if kernel.backend != "mosaic_gpu":
        return
    for reader, ends in _ENDS.items():

        def starts(equation: Any, reader: str = reader) -> Sequence[Any]:
            if equation.primitive.name != reader:
                return ()
            read = [(equation.invars[position], key) for position, key in order.READERS[reader]]
            return [ref for ref, key in read if _is_smem(ref) and not order.part_of(equation, key)]

        for write, read in order.uses(kernel, order.Order(starts, ends, order.WRITERS, again=True)):
            related = [{"frames": places(read), "text": "the read that is not waited for"}]
            facts = {"reader": reader, "writer": write[-1].primitive.name}
            yield Found("smem-overwritten-in-use", places(write), facts, related)
            return


def _is_smem(ref: Any) -> bool:
    return is_variable(ref) and memory_space(ref) == "smem"
