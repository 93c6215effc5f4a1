"""Memory read while the copy into it is still under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import order
from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """A copy into a whole ref, then a read of it, and no wait between them.

    Where nothing in the kernel waits, the check ``copy-never-waited`` tells of a TPU's copies.
    """
    waits = any("wait" in equation.primitive.name for equation, _ in kernel.equations())

    def starts(equation: Any) -> Sequence[Any]:
        name = equation.primitive.name
        if name == "copy_gmem_to_smem" and not order.part_of(equation, "dst_"):
            return [equation.invars[1]]
        return _destination(equation) if name == "dma_start" and waits else ()

    for read, copy in order.uses(kernel, order.Order(starts, ("wait",), order.READERS)):
        facts = {"read": read[-1].primitive.name, "copy": copy[-1].primitive.name}
        related = [{"frames": places(copy), "text": "the copy that is not waited for"}]
        yield Found("read-before-wait", places(read), facts, related)
        return


def _destination(start: Any) -> list[Any]:
    """The ref that a TPU's copy goes to, where it is the whole of it."""
    parts = start.params["tree"].unflatten(start.invars)
    found = parts[1] if isinstance(parts, tuple) and len(parts) > 2 else None
    return [v for v in start.invars if v is found][:1]
