"""Products of a pair of blocks in a cluster that is no pair."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import gpu_kernel
from jax_environments import JaxPython


def _product(cluster: str) -> str:
    body = """
def body(x, o, a, b, acc, bar):
    plgpu.tcgen05_mma(acc, a, b, bar, accumulate=False, collective_axis="c")
    plgpu.barrier_wait(bar)
    o[...] = x[...]
"""
    scratch = (
        "plgpu.SMEM((128, 64), jnp.float16, transforms=T)",
        "plgpu.SMEM((64, 128), jnp.float16, transforms=T)",
        "plgpu.TMEM((128, 256), jnp.float32, collective=True)",
        "plgpu.Barrier(orders_tensor_core=True)",
    )
    options = (f"cluster={cluster},", 'cluster_names=("c",),')
    one = "(128,), jnp.float32"
    return gpu_kernel(body, inputs=(one,), out=one, scratch=scratch, options=options)


GIVEN = {
    "four": Case(_product("(4,)"), '"c"', ("the size 2",), fixes=1, related=1),
    "right": Case(_product("(2,)"), rule=""),
}
RULE = cases("collective-product-cluster", GIVEN)


def test_collective_product_cluster(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
