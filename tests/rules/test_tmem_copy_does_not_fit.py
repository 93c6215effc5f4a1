"""Copies from SMEM into TMEM between refs that do not fit, under both lowering semantics."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import gpu_kernel
from jax_environments import JaxPython

F8 = "jnp.float8_e8m0fnu"
SCALES = "plgpu.TMEMLayout.SCALES_LAYOUT"
META = "plgpu.TMEMLayout.SPARSE_METADATA_LAYOUT"
TILED = "(plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))"
LANE = "compiler_params=plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane),"


def _copy(call: str, smem: str, tmem: str, lane: bool = False) -> str:
    body = f"""
def body(x, o, smem, tmem, bar):
    o[...] = x[...]
    plgpu.{call}(smem, tmem)  # pallas-lsp: ignore[memory-never-written]
    plgpu.tcgen05_commit_arrive(bar)
    plgpu.barrier_wait(bar)
"""
    scratch = (smem, tmem, "plgpu.Barrier(orders_tensor_core=True)")
    return gpu_kernel(
        body,
        inputs=("(128,), jnp.float32",),
        out="(128,), jnp.float32",
        scratch=scratch,
        options=[LANE] if lane else [],
    )


def _both(name: str, call: str, smem: str, tmem: str, **case: object) -> dict[str, Case]:
    made = {}
    for lane in (False, True):
        made[f"{name}_{'lane' if lane else 'warpgroup'}"] = Case(_copy(call, smem, tmem, lane), **case)  # type: ignore[arg-type]
    return made


GIVEN = {
    **_both(
        "scales_shape",
        "async_copy_scales_to_tmem",
        f"plgpu.SMEM((128, 4), {F8})",
        f"plgpu.TMEM((128, 4), {F8}, layout={SCALES})",
        marks="smem",
        says=("(m / 128, k / 4, 32, 16) = (1, 1, 32, 16)", "it is (128, 4)"),
        fixes=1,
        related=2,
    ),
    **_both(
        "scales_types",
        "async_copy_scales_to_tmem",
        "plgpu.SMEM((1, 1, 32, 16), jnp.float8_e4m3fn)",
        f"plgpu.TMEM((128, 4), {F8}, layout={SCALES})",
        marks="smem",
        says=("float8_e4m3fn into float8_e8m0fnu",),
        fixes=1,
    ),
    **_both(
        "scales_no_type",
        "async_copy_scales_to_tmem",
        "plgpu.SMEM((1, 1, 32, 16), jnp.int8)",
        f"plgpu.TMEM((128, 4), jnp.int8, layout={SCALES})",
        marks="tmem",
        says=("float8_e8m0fnu or float8_e4m3fn", "int8"),
    ),
    **_both(
        "scales_layout",
        "async_copy_scales_to_tmem",
        f"plgpu.SMEM((1, 1, 32, 16), {F8})",
        f"plgpu.TMEM((128, 4), {F8}, packed=True)",
        marks="tmem",
        says=("SCALES_LAYOUT", "has none"),
        fixes=1,
    ),
    **_both(
        "scales_rows",
        "async_copy_scales_to_tmem",
        f"plgpu.SMEM((3, 1, 32, 16), {F8})",
        f"plgpu.TMEM((384, 4), {F8}, layout={SCALES})",
        marks="tmem",
        says=("rows are 128 or 256", "(384, 4)"),
    ),
    **_both(
        "metadata_shape",
        "async_copy_sparse_metadata_to_tmem",
        "plgpu.SMEM((128, 64), jnp.uint2)",
        f"plgpu.TMEM((128, 64), jnp.uint2, layout={META})",
        marks="smem",
        says=("(1, k / 64, 128, 64) = (1, 1, 128, 64)",),
        fixes=1,
    ),
    **_both(
        "metadata_columns",
        "async_copy_sparse_metadata_to_tmem",
        "plgpu.SMEM((1, 1, 128, 64), jnp.uint2)",
        f"plgpu.TMEM((128, 32), jnp.uint2, layout={META})",
        marks="tmem",
        says=("a multiple of 64 columns",),
    ),
    **_both(
        "copy_layout",
        "async_copy_smem_to_tmem",
        f"plgpu.SMEM((128, 128), jnp.float32, transforms={TILED})",
        "plgpu.TMEM((128, 128), jnp.float32, layout=plgpu.TMEMLayout.M64_COLLECTIVE_LAYOUT(128))",
        marks="tmem",
        says=("M64_COLLECTIVE_LAYOUT",),
        fixes=1,
    ),
    **_both(
        "copy_packing",
        "async_copy_smem_to_tmem",
        "plgpu.SMEM((128, 128), jnp.float16, transforms=T)",
        "plgpu.TMEM((128, 128), jnp.float16, packed=False)",
        marks="tmem",
        says=("16 bits, 2 to a column", "packed=True"),
        fixes=1,
    ),
    **_both(
        "copy_rows",
        "async_copy_smem_to_tmem",
        f"plgpu.SMEM((64, 128), jnp.float32, transforms={TILED})",
        "plgpu.TMEM((64, 128), jnp.float32)",
        marks="tmem",
        says=("all of its 128 rows", "has 64"),
    ),
    "copy_untiled": Case(
        _copy(
            "async_copy_smem_to_tmem",
            "plgpu.SMEM((128, 128), jnp.float32)",
            "plgpu.TMEM((128, 128), jnp.float32)",
            lane=True,
        ),
        "smem",
        ("no tiling and swizzle",),
    ),
    **_both(
        "right_scales",
        "async_copy_scales_to_tmem",
        f"plgpu.SMEM((1, 1, 32, 16), {F8})",
        f"plgpu.TMEM((128, 4), {F8}, layout={SCALES})",
        rule="",
    ),
    **_both(
        "right_metadata",
        "async_copy_sparse_metadata_to_tmem",
        "plgpu.SMEM((1, 1, 128, 64), jnp.uint2)",
        f"plgpu.TMEM((128, 64), jnp.uint2, layout={META})",
        rule="",
    ),
    **_both(
        "right_copy",
        "async_copy_smem_to_tmem",
        f"plgpu.SMEM((128, 128), jnp.float32, transforms={TILED})",
        "plgpu.TMEM((128, 128), jnp.float32)",
        rule="",
    ),
}
RULE = cases("tmem-copy-does-not-fit", GIVEN)


def test_tmem_copy_does_not_fit(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
