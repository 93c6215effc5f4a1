from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import wgmma_kernel
from jax_environments import JaxPython

TRANSPOSED = wgmma_kernel(b="(128, 64), jnp.float16")
RULE = cases(
    "wgmma-shape-mismatch",
    {
        "right": Case(wgmma_kernel(), rule=""),
        "contraction": Case(
            wgmma_kernel(b="(128, 128), jnp.float16"), "b_s", ("`a_s` has 64 columns", "`b_s` has 128 rows"), related=3
        ),
        "stored_transposed": Case(TRANSPOSED, "b_s", ("64 columns", "128 rows"), fixes=1),
        "keywords": Case(
            wgmma_kernel("plgpu.wgmma(acc=acc, b=b_s, a=a_s)", b="(128, 64), jnp.float16"), "b_s", fixes=1
        ),
        "accumulator": Case(
            wgmma_kernel(acc="plgpu.ACC((64, 64), jnp.float32)"), "acc", ("(64, 64)", "is (64, 128)"), fixes=1
        ),
        "alias": Case(
            TRANSPOSED.replace("mosaic_gpu as plgpu", "mosaic_gpu as mg").replace("plgpu.", "mg."), "b_s", fixes=1
        ),
        "rank": Case(wgmma_kernel("plgpu.wgmma(acc.at[0], a_s, b_s)"), "acc.at[0]", ("two dimensions",)),
    },
)


def test_each_variant(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
