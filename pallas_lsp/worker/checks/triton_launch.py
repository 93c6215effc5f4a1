"""Parameters of a Triton launch that its compiler does not take, whatever jax says."""

from __future__ import annotations

from collections.abc import Iterator

from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """``num_warps`` has to be a power of two: a program's elements are spread evenly over its threads."""
    if kernel.backend != "triton":
        return
    given = kernel.equation.params.get("compiler_params")
    given = given.get("triton") if isinstance(given, dict) else given
    warps = getattr(given, "num_warps", None)
    if isinstance(warps, int) and (warps < 1 or warps & (warps - 1)):
        yield Found("triton-warps", places(kernel.chain), {"num_warps": warps})
