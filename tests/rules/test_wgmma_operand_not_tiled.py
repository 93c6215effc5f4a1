from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import LANE, tcgen05_kernel, wgmma_kernel
from jax_environments import JaxPython

A = "plgpu.SMEM((64, 64), jnp.float16)"
B = "plgpu.SMEM((64, 128), jnp.float16)"
NARROW = "(plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(64))"
TALL = "(plgpu.TilingTransform((16, 64)), plgpu.SwizzleTransform(128))"
RULE = cases(
    "wgmma-operand-not-tiled",
    {
        "both_plain": Case(
            wgmma_kernel(a_scratch=A, b_scratch=B, options=[LANE]),
            "a_s",
            ("no tiling", "(8, 64)", "`b_s`"),
            fixes=1,
            related=2,
        ),
        "both_plain_old_default": Case(wgmma_kernel(a_scratch=A, b_scratch=B), "a_s", fixes=1, before=(0, 11)),
        "both_plain_inferred": Case(wgmma_kernel(a_scratch=A, b_scratch=B), rule="", since=(0, 11)),
        "one_plain": Case(wgmma_kernel(b_scratch=B, options=[LANE]), "b_s", ("no tiling",), fixes=1),
        "tiled_only": Case(
            wgmma_kernel(a_scratch=f"{A[:-1]}, transforms=(plgpu.TilingTransform((8, 64)),))", options=[LANE]),
            "a_s",
            ("tiled by (8, 64) and not swizzled",),
            fixes=1,
        ),
        "tall_tiles": Case(
            wgmma_kernel(a_scratch=f"{A[:-1]}, transforms={TALL})", options=[LANE]),
            "a_s",
            ("(16, 64)", "(8, 64)"),
            fixes=1,
        ),
        "two_swizzles": Case(
            wgmma_kernel(b_scratch=f"{B[:-1]}, transforms={NARROW})", options=[LANE]),
            "b_s",
            ("64 bytes", "128"),
            fixes=2,
        ),
        "two_swizzles_inferred": Case(
            wgmma_kernel(b_scratch=f"{B[:-1]}, transforms={NARROW})"),
            "b_s",
            ("64 bytes", "128"),
            fixes=2,
            since=(0, 12),
        ),
        "tcgen05": Case(
            tcgen05_kernel(a_scratch="plgpu.SMEM((128, 64), jnp.float16)", options=[LANE]),
            "a_s",
            ("tcgen05_mma",),
            fixes=1,
        ),
    },
)


def test_each_variant(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
