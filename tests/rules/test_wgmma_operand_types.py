from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import wgmma_kernel
from jax_environments import JaxPython

BYTES = "transforms=(plgpu.TilingTransform((8, 128)), plgpu.SwizzleTransform(128))"


def _bytes(dtype: str, acc: str) -> str:
    return wgmma_kernel(
        a=f"(64, 128), {dtype}",
        b=f"(128, 128), {dtype}",
        a_scratch=f"plgpu.SMEM((64, 128), {dtype}, {BYTES})",
        b_scratch=f"plgpu.SMEM((128, 128), {dtype}, {BYTES})",
        acc=f"plgpu.ACC((64, 128), {acc})",
        out=f"(64, 128), {acc}",
    )


RULE = cases(
    "wgmma-operand-types",
    {
        "mixed": Case(wgmma_kernel(b="(64, 128), jnp.bfloat16"), "b_s", ("float16", "bfloat16", "one type"), related=2),
        "accumulator": Case(
            wgmma_kernel(acc="plgpu.ACC((64, 128), jnp.int32)", out="(64, 128), jnp.int32"),
            "acc",
            ("`acc` is int32", "float32 or float16"),
            fixes=1,
            related=2,
        ),
        "accumulator_of_half": Case(
            wgmma_kernel(
                a="(64, 64), jnp.bfloat16",
                b="(64, 128), jnp.bfloat16",
                acc="plgpu.ACC((64, 128), jnp.float16)",
                out="(64, 128), jnp.float16",
            ),
            "acc",
            ("`acc` is float16", "float32"),
        ),
        "unsigned_operands": Case(_bytes("jnp.uint8", "jnp.int32"), "a_s", ("uint8",)),
        "integers_into_floats": Case(_bytes("jnp.int8", "jnp.float32"), "acc", ("int8", "int32")),
        "unsigned_accumulator": Case(
            wgmma_kernel(acc="plgpu.ACC((64, 128), jnp.uint32)", out="(64, 128), jnp.uint32"),
            "jnp.uint32",
            ("int32",),
        ),
    },
)


def test_each_variant(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
