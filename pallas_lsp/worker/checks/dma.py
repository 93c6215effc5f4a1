"""A TPU copy that is started and never waited for."""

from __future__ import annotations

from collections.abc import Iterator

from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """``dma_start`` in a kernel that waits for nothing at all."""
    found = list(kernel.equations())
    if any("wait" in equation.primitive.name for equation, _ in found):
        return
    for equation, chain in found:
        if equation.primitive.name == "dma_start":
            yield Found("copy-never-waited", places(chain))
