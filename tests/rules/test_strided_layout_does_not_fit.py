"""Strided layouts for a number of elements that the threads cannot share."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import gpu_kernel
from jax_environments import JaxPython


def _cast(size: int, vec: int) -> str:
    body = f"""
def body(x, o):
    o[...] = plgpu.layout_cast(x[...], plgpu.Layout.WG_STRIDED(({size},), vec_size={vec}))
"""
    return gpu_kernel(body, inputs=(f"({size},), jnp.float32",), out=f"({size},), jnp.float32")


GIVEN = {
    "vector_too_long": Case(
        _cast(384, 2),
        "plgpu.Layout.WG_STRIDED((384,), vec_size=2)",
        ("384 elements", "a multiple of 256"),
        fixes=1,
    ),
    "no_vector_fits": Case(
        _cast(100, 1), "plgpu.Layout.WG_STRIDED((100,), vec_size=1)", ("100 elements", "a multiple of 128")
    ),
    "right": Case(_cast(384, 1), rule=""),
}
RULE = cases("strided-layout-does-not-fit", GIVEN)


def test_strided_layout_does_not_fit(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
