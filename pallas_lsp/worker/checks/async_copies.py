"""Memory read while the copy into it is still under way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .kernel import Found, Kernel, indexed, is_variable, mentions, places

_READERS = {"get": (0,), "wgmma_ref": (1, 2), "wgmma": (1, 2), "copy_smem_to_gmem": (0,), "tcgen05_mma": (1, 2)}


def check(kernel: Kernel) -> Iterator[Found]:
    """A copy into a whole ref, then a read of it, and no wait between them in the same straight line.

    Where nothing in the kernel waits, the check ``copy-never-waited`` tells of a TPU's copies.
    """
    waits = any("wait" in equation.primitive.name for equation, _ in kernel.equations())
    for jaxpr, chain in kernel.bodies():
        pending: dict[Any, Any] = {}
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            if name == "copy_gmem_to_smem":
                if not indexed(equation):
                    pending[equation.invars[1]] = equation
            elif name == "dma_start":
                destination = _destination(equation) if waits else None
                if destination is not None:
                    pending[destination] = equation
            elif mentions(equation, "wait"):
                pending.clear()
            elif name in _READERS and not indexed(equation):
                for position in _READERS[name]:
                    copy = _of(pending, equation, position)
                    if copy is not None:
                        yield Found(
                            "read-before-wait",
                            places((*chain, equation)),
                            {"read": name, "copy": copy.primitive.name},
                            [{"frames": places((*chain, copy)), "text": "the copy that is not waited for"}],
                        )
                        return


def _destination(start: Any) -> Any:
    """The ref that a TPU's copy goes to, where it is the whole of it."""
    parts = start.params["tree"].unflatten(start.invars)
    found = parts[1] if isinstance(parts, tuple) and len(parts) > 2 else None
    return found if found in start.invars else None


def _of(known: dict[Any, Any], equation: Any, position: int) -> Any:
    operand = equation.invars[position] if position < len(equation.invars) else None
    return known.get(operand) if operand is not None and is_variable(operand) else None
