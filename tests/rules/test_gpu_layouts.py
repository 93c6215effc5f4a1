"""The rules for how values lie in registers: layouts that conflict or do not fit, parts, reductions, conversions."""

from __future__ import annotations

import pytest
from gpu_check import Case, cases, check
from gpu_kernels import LANE, gpu_kernel, product_kernel, value_kernel, wgmma_kernel
from jax_environments import JaxPython

WARPGROUP = "compiler_params=plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Warpgroup),"
STRIDED = "plgpu.Layout.WG_STRIDED((64, 128), vec_size=2)"


def _product(expression: str, options: list[str], *, more: str = "") -> str:
    """A kernel that adds something to a product: ``expression`` of ``acc[...]`` and the input ``c``."""
    code = f"""\
    def scope(acc):
        plgpu.wgmma(acc, a_s, b_s)
        return acc[...]

    product = pl.run_scoped(scope, plgpu.ACC((64, 128), jnp.float32))
    {more or "pass"}
    o[...] = {expression}"""
    return product_kernel(code, options=options)


CONFLICTS = cases(
    "layout-conflict",
    {
        "cast_to_another": Case(
            _product(f"product + plgpu.layout_cast(c[...], {STRIDED})", [WARPGROUP]),
            says=("plgpu.Layout.WGMMA", "WG_STRIDED"),
            fixes=1,
            related=1,
        ),
        "cast_before": Case(
            _product("product + bias", [WARPGROUP], more=f"bias = plgpu.layout_cast(c[...], {STRIDED})"),
            fixes=1,
            related=1,
        ),
        "two_casts": Case(
            value_kernel(
                f"plgpu.layout_cast(x[...], plgpu.Layout.WGMMA) * plgpu.layout_cast(y[...], {STRIDED})",
                x="(64, 128), jnp.float32",
                y="(64, 128), jnp.float32",
                options=[WARPGROUP],
            ),
            fixes=1,
        ),
        "under_lane_semantics": Case(_product("product + c[...]", [LANE]), "product + c[...]", fixes=1),
        "narrow_operand_under_lane_semantics": Case(
            value_kernel(
                "x[...] * y[...].astype(jnp.float32)",
                x="(64, 128), jnp.float32",
                y="(64, 128), jnp.bfloat16",
                options=[LANE],
            ),
            fixes=1,
        ),
    },
)

MISFITS = cases(
    "layout-does-not-fit",
    {
        "rows": Case(
            value_kernel("plgpu.layout_cast(x[...], plgpu.Layout.WGMMA)", x="(96, 128), jnp.float32"), says=("96",)
        ),
        "too_few": Case(value_kernel("x[...] * 2", x="(96,), jnp.float32"), says=("96 elements", "multiple of 128")),
        "iota": Case(
            value_kernel("x[...] + lax.broadcasted_iota(jnp.float32, (128, 128), 1)", options=[LANE]),
            says=("no layout yet",),
            fixes=1,
        ),
        "row_vector": Case(
            value_kernel(
                "x[...] + lax.broadcast_in_dim(y[...], (128, 128), (0,))", y="(128,), jnp.float32", options=[LANE]
            ),
            "lax.broadcast_in_dim(y[...], (128, 128), (0,))",
            ("f32[128] to f32[128,128]", "no rows and columns"),
        ),
    },
)

LAYOUTS = cases(
    "layout-name-invalid",
    {
        "layout_called": Case(
            value_kernel("plgpu.layout_cast(x[...], plgpu.Layout.WGMMA(128))"),
            "plgpu.Layout.WGMMA(128)",
            fixes=1,
            since=(0, 12),
        ),
        "layout_not_called": Case(
            value_kernel("plgpu.layout_cast(x[...], plgpu.Layout.WG_STRIDED)"),
            "plgpu.Layout.WG_STRIDED",
            ("WG_STRIDED((128, 128), vec_size=2)",),
            fixes=1,
        ),
        "only_the_name_of_one": Case(
            value_kernel('plgpu.layout_cast(x[...], "WGMMA")'),
            '"WGMMA"',
            ("is no layout",),
            fixes=1,
            since=(0, 12),
        ),
    },
)

CARRIES = cases(
    "loop-carry-layout",
    {
        "zeros": Case(
            gpu_kernel(
                "def body(x, o):\n    o[...] = lax.fori_loop(\n        0, 4, lambda r, total: total + x[r], "
                "jnp.zeros((256,), jnp.float32)\n    )",
                inputs=("(4, 256), jnp.float32",),
                out="(256,), jnp.float32",
                options=[LANE],
            ),
            says=("WG_STRIDED",),
            fixes=1,
        ),
        "branches": Case(
            value_kernel(
                "lax.cond(x[0, 0] > 0, lambda: x[...], lambda: jnp.zeros((128, 128), jnp.float32))", options=[LANE]
            ),
            says=("branches",),
        ),
    },
)

REDUCTIONS = cases(
    "reduction-layout-unsupported",
    {
        "rows": Case(
            value_kernel("jnp.sum(x[...], axis=1)", out="(128,), jnp.float32", options=[LANE]),
            "jnp.sum(x[...], axis=1)",
            fixes=1,
        ),
        "two_axes": Case(
            value_kernel(
                "jnp.sum(x[...], axis=(1, 2))", x="(2, 64, 128), jnp.float32", out="(2,), jnp.float32", options=[LANE]
            ),
        ),
    },
)

KEPT = cases(
    "kept-dimension-has-no-layout",
    {
        "softmax": Case(
            value_kernel(
                "jnp.exp(v - jnp.max(v, axis=-1, keepdims=True))",
                before="v = plgpu.load(x, (), layout=plgpu.Layout.WGMMA, optimized=False)",
                options=[LANE],
            ),
            fixes=1,
            before=(0, 11),
        ),
        "softmax_of_later_versions": Case(
            value_kernel(
                "jnp.exp(v - jnp.max(v, axis=-1, keepdims=True))",
                before="v = plgpu.load(x, layout=plgpu.Layout.WGMMA, optimized=False)",
                options=[LANE],
            ),
            fixes=1,
            since=(0, 11),
        ),
    },
)

PARTS = cases(
    "register-value-sliced",
    {
        "rows": Case(
            value_kernel("v[:64]", out="(64, 128), jnp.float32", before="v = x[...]"),
            "v[:64]",
            ("x[:64]",),
            fixes=1,
        ),
        "one_row": Case(value_kernel("v[3]", out="(128,), jnp.float32", before="v = x[...]"), "v[3]", fixes=1),
        "at_once": Case(value_kernel("x[...][64:]", out="(64, 128), jnp.float32"), "x[...][64:]", fixes=1),
        "under_lane_semantics": Case(
            value_kernel("v[:64]", out="(64, 128), jnp.float32", before="v = x[...]", options=[LANE]), fixes=1
        ),
    },
)

GMEM = cases(
    "gmem-access-not-coalesced",
    {
        "load": Case(
            value_kernel(
                "plgpu.layout_cast(x[...], plgpu.Layout.WGMMA).astype(jnp.float32)",
                x="(64, 128), jnp.float16",
                out="(64, 128), jnp.float32",
                options=[WARPGROUP],
            ),
            "x[...]",
            ("optimized=False",),
            fixes=1,
        ),
        "stored_product": Case(
            wgmma_kernel(out="(64, 128), jnp.float16").replace(
                "return acc[...]", "return acc[...].astype(jnp.float16)"
            ),
            says=("optimized=False",),
            fixes=1,
            since=(0, 12),
        ),
    },
)

CONVERSIONS = cases(
    "gpu-conversion-unsupported",
    {
        "int8_sum": Case(value_kernel("x[...] + x[...]", x="(128, 128), jnp.int8"), "x[...] + x[...]", fixes=1),
        "narrow_floats": Case(
            value_kernel(
                "x[...].astype(jnp.float8_e5m2)", x="(128, 128), jnp.bfloat16", out="(128, 128), jnp.float8_e5m2"
            ),
            fixes=1,
        ),
        "float8_product": Case(value_kernel("x[...] * x[...]", x="(128, 128), jnp.float8_e4m3fn"), fixes=1),
        "bits_of_another_width": Case(
            value_kernel(
                "lax.bitcast_convert_type(x[...], jnp.int16)",
                x="(128, 128), jnp.float32",
                out="(128, 128, 2), jnp.int16",
            ),
        ),
    },
)

OPERATIONS = cases(
    "mosaic-gpu-unsupported-operation",
    {
        "cumsum": Case(value_kernel("jnp.cumsum(x[...], axis=0)"), "jnp.cumsum(x[...], axis=0)", ("cumsum",)),
        "sort": Case(value_kernel("jnp.sort(x[...], axis=1)"), says=("sort",)),
        "dot": Case(
            value_kernel("jnp.dot(x[...], y[...])", y="(128, 128), jnp.float32"),
            "jnp.dot(x[...], y[...])",
            ("plgpu.wgmma",),
        ),
        "gather": Case(value_kernel("x[...][y[...]]", y="(128,), jnp.int32"), says=("pl.loop",)),
        "argmax": Case(value_kernel("jnp.argmax(x[...], axis=1)", out="(128,), jnp.int32"), says=("argmax",)),
        "strided": Case(value_kernel("x[...][::2]", out="(64, 128), jnp.float32"), "x[...][::2]", ("every n-th",)),
        "joined": Case(
            value_kernel("jnp.concatenate([x[...], x[...]])", out="(256, 128), jnp.float32"),
            "jnp.concatenate([x[...], x[...]])",
            ("concatenate", "its own slice"),
            fixes=1,
        ),
        "split": Case(
            value_kernel("jnp.split(x[...], 2)[0]", out="(64, 128), jnp.float32"),
            "jnp.split(x[...], 2)",
            ("each part from the ref",),
        ),
        "transpose": Case(value_kernel("x[...].T"), "x[...].T", ("transpose",)),
        "flip": Case(value_kernel("jnp.flip(x[...], 0)"), says=("rev",)),
    },
)

CORRECT = {
    "sum_with_bias": Case(
        _product("product + plgpu.layout_cast(c[...], plgpu.Layout.WGMMA)", [WARPGROUP]), rule="", since=(0, 12)
    ),
    "whole_reduction": Case(value_kernel("x[...] - jnp.sum(x[...])"), rule=""),
    "elementwise": Case(value_kernel("jnp.exp(x[...]) * 2 + jnp.maximum(x[...], 0)"), rule=""),
    "wide_arithmetic": Case(
        value_kernel("(x[...].astype(jnp.int32) + 1).astype(jnp.int8)", x="(128, 128), jnp.int8"), rule=""
    ),
    "rows_of_a_ref": Case(value_kernel("x[:64] + x[64:]", out="(64, 128), jnp.float32"), rule=""),
}
cases("correct layouts", CORRECT)


@pytest.mark.parametrize(
    "rule",
    [CONFLICTS, MISFITS, LAYOUTS, CARRIES, REDUCTIONS, KEPT, PARTS, GMEM, CONVERSIONS, OPERATIONS, "correct layouts"],
)
def test_each_variant(jax_python: JaxPython, rule: str) -> None:
    check(jax_python, rule)
