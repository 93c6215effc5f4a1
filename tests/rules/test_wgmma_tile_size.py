from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import LANE, wgmma_kernel
from jax_environments import JaxPython


def _rows(rows: str, head: str = "") -> str:
    return wgmma_kernel(
        a=f"({rows}, 64), jnp.float16",
        acc=f"plgpu.ACC(({rows}, 128), jnp.float32)",
        out=f"({rows}, 128), jnp.float32",
        head=head,
    )


RULE = cases(
    "wgmma-tile-size",
    {
        "rows": Case(_rows("96"), "acc", ("96 rows", "multiples of 64"), fixes=1, related=1),
        "rows_by_name": Case(_rows("BM", "BM, BN = 96, 128\n"), "acc", ("96 rows",), fixes=2),
        "columns": Case(
            wgmma_kernel(
                b="(64, 512), jnp.float16", acc="plgpu.ACC((64, 512), jnp.float32)", out="(64, 512), jnp.float32"
            ),
            "acc",
            ("512 columns", "at most 256"),
            fixes=1,
        ),
        "columns_under_lane_semantics": Case(
            wgmma_kernel(
                b="(64, 512), jnp.float16",
                acc="plgpu.ACC(shape=(64, 512), dtype=jnp.float32)",
                out="(64, 512), jnp.float32",
                options=[LANE],
            ),
            "acc",
            ("512 columns",),
            fixes=1,
        ),
        "depth": Case(
            wgmma_kernel(
                a="(64, 24), jnp.float16",
                b="(24, 128), jnp.float16",
                a_scratch="plgpu.SMEM((64, 24), jnp.float16)",
                b_scratch="plgpu.SMEM((24, 128), jnp.float16)",
                options=[LANE],
            ),
            "a_s",
            ("24 columns", "multiple of 16"),
        ),
    },
)


def test_each_variant(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
