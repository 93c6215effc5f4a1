"""The rules for Blackwell's tensor core and its memory: tcgen05_mma, TMEM, their barriers."""

from __future__ import annotations

import pytest
from gpu_check import Case, cases, check
from gpu_kernels import LANE, tcgen05_kernel
from jax_environments import JaxPython

WIDENED = "o[...] = plgpu.async_load_tmem(acc).astype(jnp.float32)"
CLUSTER = ["cluster=(2,),", 'cluster_names=("c",),']

OPERANDS = cases(
    "tcgen05-operands-invalid",
    {
        "not_transposed": Case(
            tcgen05_kernel(b="(128, 64), jnp.float16"), "b_s", ("64 columns", "128 rows"), fixes=1, related=3
        ),
        "rows_of_the_accumulator": Case(
            tcgen05_kernel(a="(64, 64), jnp.float16"), "a_s", ("`acc` has 128 rows", "`a_s` has 64")
        ),
        "columns_of_the_accumulator": Case(
            tcgen05_kernel(acc="plgpu.TMEM((128, 64), jnp.float32)"), "acc", ("64 columns", "has 128"), fixes=1
        ),
        "two_element_types": Case(
            tcgen05_kernel(b="(64, 128), jnp.bfloat16"), "b_s", ("float16", "bfloat16", "one element type")
        ),
        "accumulator_type": Case(
            tcgen05_kernel(
                a="(128, 64), jnp.bfloat16",
                b="(64, 128), jnp.bfloat16",
                acc="plgpu.TMEM((128, 128), jnp.bfloat16, packed=False)",
                read=WIDENED,
            ),
            "acc",
            ("bfloat16", "accumulated in float32"),
            fixes=1,
        ),
        "packed_accumulator": Case(
            tcgen05_kernel(acc="plgpu.TMEM((128, 128), jnp.float16, packed=True)", read=WIDENED),
            "acc",
            ("`packed=True`", "packed=False"),
            fixes=1,
        ),
        "axis_that_is_no_cluster": Case(
            tcgen05_kernel('plgpu.tcgen05_mma(acc, a_s, b_s, mma_bar, accumulate=False, collective_axis="c")'),
            '"c"',
            ('`collective_axis="c"`', "it has none"),
            fixes=1,
        ),
        "not_collective": Case(
            tcgen05_kernel(
                'plgpu.tcgen05_mma(acc, a_s, b_s, mma_bar, accumulate=False, collective_axis="c")',
                acc="plgpu.TMEM((128, 256), jnp.float32)",
                out="(128, 256), jnp.float32",
                options=CLUSTER,
            ),
            "acc",
            ("collective=True",),
        ),
        "three_dimensions": Case(
            tcgen05_kernel(acc="plgpu.TMEM((2, 128, 128), jnp.float32)"), "acc", ("takes matrices",)
        ),
        "odd_columns": Case(
            tcgen05_kernel(
                b="(64, 320), jnp.float16",
                acc="plgpu.TMEM((128, 320), jnp.float32)",
                out="(128, 320), jnp.float32",
            ),
            "acc",
            ("320 columns", "multiple of 8 up to 256, or 512"),
        ),
    },
)

MEMORY = cases(
    "tcgen05-operand-memory",
    {
        "accumulator_in_smem": Case(
            tcgen05_kernel(acc="plgpu.SMEM((128, 128), jnp.float32)", read="o[...] = acc[...]"), "acc", fixes=1
        ),
        "right_operand_in_gmem": Case(
            tcgen05_kernel("plgpu.tcgen05_mma(acc, a_s, b, mma_bar, accumulate=False)"), "b", ("GMEM",)
        ),
        "load_of_smem": Case(tcgen05_kernel(read="o[...] = plgpu.async_load_tmem(a_s)"), "a_s", ("SMEM",)),
    },
)

BARRIERS = cases(
    "tcgen05-barrier-unordered",
    {
        "of_the_product": Case(
            tcgen05_kernel(mma_bar="plgpu.Barrier()"), "mma_bar", ("orders_tensor_core=True",), fixes=1, related=1
        ),
        "of_a_commit": Case(
            tcgen05_kernel(
                "plgpu.tcgen05_mma(acc, a_s, b_s, accumulate=False)\n    plgpu.tcgen05_commit_arrive(mma_bar)",
                mma_bar="plgpu.Barrier(num_arrivals=1)",
            ),
            "mma_bar",
            fixes=1,
        ),
    },
)

ALLOCATIONS = cases(
    "tmem-allocation-invalid",
    {
        "rows": Case(tcgen05_kernel(acc="plgpu.TMEM((96, 128), jnp.float32)"), says=("96",)),
        "packing_not_said": Case(
            tcgen05_kernel(acc="plgpu.TMEM((128, 128), jnp.float16)", read=WIDENED),
            fixes=1,
        ),
        "transforms": Case(tcgen05_kernel(acc="plgpu.TMEM((128, 128), jnp.float32, transforms=T)"), fixes=1),
        "option_of_tmem": Case(
            tcgen05_kernel(a_scratch="plgpu.SMEM((128, 64), jnp.float16, packed=True, transforms=T)"), fixes=1
        ),
        "pair_without_cluster": Case(
            tcgen05_kernel(acc="plgpu.TMEM((128, 128), jnp.float32, collective=True)"), fixes=1
        ),
        "mixed": Case(
            tcgen05_kernel(more_scratch=["plgpu.TMEM((128, 128), jnp.float32, collective=True)"], options=CLUSTER),
            fixes=1,
        ),
    },
)

LAYOUTS = cases(
    "tmem-layout-unsupported",
    {
        "load": Case(tcgen05_kernel(read="o[...] = plgpu.async_load_tmem(acc, layout=plgpu.Layout.WGMMA)"), fixes=1),
        "store_under_lane_semantics": Case(
            tcgen05_kernel(
                "plgpu.async_store_tmem(acc, jnp.ones((128, 128), jnp.float32))\n    plgpu.commit_tmem()\n"
                "    plgpu.tcgen05_mma(acc, a_s, b_s, mma_bar)",
                options=[LANE],
            ),
            "jnp.ones((128, 128), jnp.float32)",
            ("stores a value",),
            fixes=1,
        ),
        "load_under_lane_semantics": Case(
            tcgen05_kernel(read="o[...] = plgpu.async_load_tmem(acc, layout=plgpu.Layout.WGMMA)", options=[LANE]),
            fixes=1,
        ),
    },
)

LIKE_SMEM = cases(
    "tmem-used-like-smem",
    {
        "read": Case(tcgen05_kernel(read="o[...] = acc[...]"), "acc[...]", ("async_load_tmem",), fixes=1),
        "read_under_lane_semantics": Case(
            tcgen05_kernel(read="o[...] = acc[...]", options=[LANE]), "acc[...]", fixes=1
        ),
        "stored": Case(
            tcgen05_kernel(
                "acc[...] = jnp.zeros((128, 128), jnp.float32)\n    plgpu.tcgen05_mma(acc, a_s, b_s, mma_bar)"
            ),
            says=("async_store_tmem",),
            fixes=1,
        ),
        "rows": Case(tcgen05_kernel(read="o[:64] = plgpu.async_load_tmem(acc.at[:64])"), says=("rows",)),
        "transposed": Case(
            tcgen05_kernel(read="o[...] = plgpu.async_load_tmem(plgpu.transpose_ref(acc, (1, 0)))"),
        ),
    },
)

CORRECT = {
    "plain": Case(tcgen05_kernel(), rule=""),
    "commit": Case(
        tcgen05_kernel("plgpu.tcgen05_mma(acc, a_s, b_s, accumulate=False)\n    plgpu.tcgen05_commit_arrive(mma_bar)"),
        rule="",
    ),
    "half_accumulator": Case(
        tcgen05_kernel(acc="plgpu.TMEM((128, 128), jnp.float16, packed=False)", read=WIDENED), rule=""
    ),
}
cases("correct tensor core", CORRECT)


@pytest.mark.parametrize("rule", [OPERANDS, MEMORY, BARRIERS, ALLOCATIONS, LAYOUTS, LIKE_SMEM, "correct tensor core"])
def test_each_variant(jax_python: JaxPython, rule: str) -> None:
    check(jax_python, rule)
