"""Atomic operations with values that several threads hold."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import gpu_kernel
from jax_environments import JaxPython


def _added(value: str, ref: str = "s") -> str:
    body = f"""
def body(x, o, s):
    s[...] = x[...]
    plgpu.atomic_add({ref}, {value})
    o[...] = s[...]
"""
    return gpu_kernel(body, scratch=("plgpu.SMEM((128, 128), jnp.float32)",))


GIVEN = {
    "constant": Case(
        _added("jnp.full((128, 128), 2.0, jnp.float32)"),
        "jnp.full((128, 128), 2.0, jnp.float32)",
        ("every thread holds as a whole",),
        fixes=1,
    ),
    "into_gmem": Case(
        _added("jnp.ones((128, 128), jnp.float32)", "o"),
        "jnp.ones((128, 128), jnp.float32)",
        ("every thread holds as a whole",),
        fixes=1,
    ),
    "right": Case(_added("x[...] * 2.0"), rule=""),
}
RULE = cases("atomic-layout-unsupported", GIVEN)


def test_atomic_layout_unsupported(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
