"""Faults that jax does not raise: found in the program of a kernel that traced and lowered.

One file a check.  A check is certain or silent: it follows refs by identity, bails out of what it does not know, and
never guesses at dynamic indices.  Each finding carries ``facts["check"]``, by which a rule of the server recognises it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import (
    accumulation,
    aliases,
    arrivals,
    async_copies,
    block_indices,
    bounds,
    collectives,
    constant_indices,
    dma,
    escapes,
    launch_sizes,
    lost_blocks,
    overwrites,
    padding,
    parallel_axes,
    stepped,
    stores,
    tpu_float64,
    triton_launch,
    unreached,
    unstored,
)
from .kernel import Found, Kernel, kernels

_CHECKS = (
    accumulation.check,
    aliases.check,
    arrivals.check,
    async_copies.check,
    block_indices.check,
    bounds.check,
    collectives.check,
    constant_indices.check,
    dma.check,
    escapes.check,
    launch_sizes.check,
    lost_blocks.check,
    overwrites.check,
    padding.check,
    parallel_axes.check,
    stores.check,
    tpu_float64.check,
    triton_launch.check,
    unreached.check,
    unstored.check,
)

_OF_ORDER = (
    *("collective-scope-in-branch", "read-before-wait", "smem-overwritten-in-use", "store-without-commit"),
    "too-few-arrivals",
)
"""What following a kernel step by step would find again."""


def run(program: Any, backend: str, around: Any = None) -> Iterator[Found]:
    """What the checks find in the kernels of a program; one that fails finds nothing.

    ``around``: the program that it was taken out of, where that shows what becomes of the outputs.
    """
    for kernel in kernels(program, backend, around):
        found: list[Found] = []
        for check in _CHECKS:
            with contextlib.suppress(Exception):
                found += check(kernel)
        if not any(each.check in _OF_ORDER for each in found):
            with contextlib.suppress(Exception):
                found += stepped.check(kernel)
        yield from found


__all__ = ["Found", "Kernel", "run"]
