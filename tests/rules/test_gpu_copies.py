"""The rules for copies between GMEM and SMEM, and for how refs in SMEM lie and are sliced."""

from __future__ import annotations

import pytest
from gpu_check import Case, cases, check
from gpu_kernels import LANE, copy_kernel, gpu_kernel, statement_kernel, wgmma_kernel
from jax_environments import JaxPython

HALF = "(128, 128), jnp.float16"
SINGLE = "(128, 128), jnp.float32"
TILED = f"plgpu.SMEM({HALF}, transforms=T)"
WIDENED = "o[...] = s[...].astype(jnp.float32)"
STORE = "plgpu.commit_smem()\n    plgpu.copy_smem_to_gmem({})\n    plgpu.wait_smem_to_gmem(0)"


def _half(copy: str = "plgpu.copy_gmem_to_smem(x, s, bar)", smem: str = TILED, x: str = HALF) -> str:
    """A kernel that copies float16 into a buffer and stores it as float32."""
    return copy_kernel(copy, x=x, smem=smem, use=WIDENED, out=SINGLE)


DIRECTIONS = cases(
    "copy-direction-swapped",
    {
        "into_smem": Case(
            copy_kernel("plgpu.copy_gmem_to_smem(s, x, bar)"), "s", ("is in SMEM", "swapped"), fixes=1, related=1
        ),
        "out_of_smem": Case(
            copy_kernel(use="o[...] = s[...]\n    " + STORE.format("o, s")), "o", ("is in GMEM",), fixes=1
        ),
        "keywords": Case(copy_kernel("plgpu.copy_gmem_to_smem(src=s, dst=x, barrier=bar)"), "s", fixes=1),
        "between_buffers": Case(
            gpu_kernel(
                "def body(x, o, s, t, bar):\n    plgpu.copy_gmem_to_smem(s, t, bar)\n    plgpu.barrier_wait(bar)\n"
                "    o[...] = t[...]",
                scratch=(*[f"plgpu.SMEM({SINGLE})"] * 2, "plgpu.Barrier()"),
            ),
            "s",
        ),
    },
)

TYPES = cases(
    "copy-element-type",
    {
        "booleans": Case(copy_kernel(x="(128, 128), jnp.bool_", use=WIDENED, out=SINGLE), "x", ("bool", "int8")),
        "float64": Case(
            copy_kernel(
                x="(128, 128), jnp.float64",
                head='jax.config.update("jax_enable_x64", True)\n',
                use=WIDENED,
                out=SINGLE,
            ),
            "x",
            ("float64", "float32 for example"),
        ),
        "complex": Case(copy_kernel(x="(128, 128), jnp.complex64"), "x", ("complex64", "real and imaginary")),
    },
)

ALIGNMENT = cases(
    "copy-not-aligned",
    {
        "rows_of_the_array": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x.at[:, :64], s, bar)",
                x="(128, 70), jnp.float16",
                smem="plgpu.SMEM((128, 64), jnp.float16)",
                out="(128, 64), jnp.float16",
            ),
            "x.at[:, :64]",
            ("multiple of 8 elements",),
        ),
        "rows_of_the_copy": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x.at[:, :4], s, bar)",
                x="(128, 64), jnp.float16",
                smem="plgpu.SMEM((128, 4), jnp.float16)",
                out="(128, 4), jnp.float16",
            ),
            "s",
            ("8 bytes", "multiples of 16 bytes"),
            fixes=1,
        ),
        "a_column": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x.at[:, 0], s, bar)",
                smem="plgpu.SMEM((128,), jnp.float32)",
                out="(128,), jnp.float32",
            ),
            "x.at[:, 0]",
            ("last dimension",),
        ),
    },
)

OPTIONS = cases(
    "copy-option-invalid",
    {
        "partition_without_axes": Case(
            copy_kernel("plgpu.copy_gmem_to_smem(x, s, bar, leader_tracked=plgpu.CopyPartition.PARTITIONED(0))"),
            "plgpu.CopyPartition.PARTITIONED(0)",
            ("which blocks",),
            fixes=1,
            since=(0, 12),
        ),
    },
)

LENGTHS = cases(
    "copy-too-long",
    {
        "one_dimension": Case(
            copy_kernel(x="(1024,), jnp.float32"), "s", ("1024 elements", "at most 256"), fixes=1, related=1
        ),
        "rows": Case(copy_kernel(x="(512, 64), jnp.float16"), "s", ("512 elements",), fixes=1),
        "under_lane_semantics": Case(copy_kernel(x="(1024,), jnp.float32", options=[LANE]), "s", fixes=1),
    },
)

SIDES = cases(
    "copy-type-mismatch",
    {
        "element_type": Case(
            _half(x=SINGLE, smem=f"plgpu.SMEM({HALF})"),
            "s",
            ("`x` is float32 and `s` is float16", "does not convert"),
            fixes=1,
            related=1,
        ),
        "shape": Case(
            copy_kernel(
                smem="plgpu.SMEM((64, 128), jnp.float32)", use="o[:64] = s[...]", out="(128, 128), jnp.float32"
            ),
            "s",
            ("(128, 128)", "(64, 128)"),
            fixes=1,
        ),
        "a_slice": Case(
            copy_kernel("plgpu.copy_gmem_to_smem(x.at[pl.ds(0, 64)], s, bar)"),
            "s",
            ("`x.at[pl.ds(0, 64)]` is (64, 128)", "same shape on both sides"),
        ),
        "back": Case(copy_kernel(use=STORE.format("s, o.at[:64]")), "s", ("(64, 128)",)),
        "one_block": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x.at[pl.ds(1, 1)], s, bar)",
                x="(4, 64, 128), jnp.float32",
                smem="plgpu.SMEM((64, 128), jnp.float32)",
                out="(64, 128), jnp.float32",
            ),
            "s",
            ("(1, 64, 128)",),
            fixes=1,
        ),
        "stored_in_another_type": Case(
            gpu_kernel(
                "def flush(smem, gmem):\n    plgpu.commit_smem()\n    plgpu.copy_smem_to_gmem(smem, gmem)\n"
                "    plgpu.wait_smem_to_gmem(0)\n\n\n"
                "def body(x, o, s):\n    s[...] = x[...] * 2\n    flush(s, o)",
                inputs=(SINGLE,),
                out=HALF,
                scratch=(f"plgpu.SMEM({SINGLE})",),
            ),
            "smem",
            ("does not convert",),
            fixes=1,
        ),
    },
)

SLICES = cases(
    "slice-not-on-tiles",
    {
        "start": Case(
            _half("plgpu.copy_gmem_to_smem(x.at[:, pl.ds(32, 128)], s, bar)", x="(128, 256), jnp.float16"),
            "pl.ds(32, 128)",
            ("starts at 32", "multiple of 64 columns"),
            fixes=1,
            since=(0, 11),
        ),
        "bounds": Case(
            _half("plgpu.copy_gmem_to_smem(x.at[:, 32:160], s, bar)", x="(128, 256), jnp.float16"),
            "32:160",
            ("starts at 32",),
            fixes=1,
            since=(0, 11),
        ),
        "rows_of_smem": Case(
            copy_kernel(
                x=HALF, smem=TILED, use="o[...] = s[4:68, :].astype(jnp.float32)", out="(64, 128), jnp.float32"
            ),
            "4:68",
            ("starts at 4", "multiple of 8 rows"),
            fixes=1,
        ),
        "size": Case(
            copy_kernel(x=HALF, smem=TILED, use="o[...] = s[:, :32].astype(jnp.float32)", out="(128, 32), jnp.float32"),
            ":32",
            ("32 columns", "no whole tiles"),
        ),
    },
)

TRANSFORMS = cases(
    "ref-transforms-do-not-fit",
    {
        "rows": Case(
            wgmma_kernel(a_scratch="plgpu.SMEM((60, 64), jnp.float16, transforms=T)"),
            "plgpu.SMEM((60, 64), jnp.float16, transforms=T)",
            ("8 does not divide 60",),
            fixes=1,
        ),
        "element_type": Case(
            copy_kernel(smem=f"plgpu.SMEM({SINGLE}, transforms=T)"),
            says=("rows of 32 elements of float32", "tiles have 64 columns"),
            fixes=1,
            related=1,
        ),
        "dimensions": Case(
            copy_kernel(x="(256,), jnp.float16", smem="plgpu.SMEM((256,), jnp.float16, transforms=T)"),
            says=("1 dimension,",),
            fixes=1,
        ),
        "order": Case(_half(smem=f"plgpu.SMEM({HALF}, transforms=T[::-1])"), says=("The tiling comes first",), fixes=1),
        "swizzle": Case(
            _half(smem=f"plgpu.SMEM({HALF}, transforms=(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(100)))"),
            "100",
            ("32, 64 or 128",),
            fixes=1,
        ),
        "swizzle_alone": Case(
            _half(smem=f"plgpu.SMEM({HALF}, transforms=(plgpu.SwizzleTransform(128),))"),
            says=("no tiling",),
            fixes=1,
        ),
    },
)

ACROSS = copy_kernel(
    x="(2, 64, 64), jnp.float16",
    smem="plgpu.SMEM((2, 64, 64), jnp.float16, transforms=T)",
    use="o[...] = plgpu.transpose_ref(s, (1, 0, 2))[...]",
    out="(64, 2, 64), jnp.float16",
)

VIEWS = cases(
    "ref-view-unsupported",
    {
        "indices": Case(
            copy_kernel(x=HALF, smem=TILED, use="o[...] = s[jnp.arange(128)]", out=HALF),
            "s[jnp.arange(128)]",
            ("slices of whole tiles",),
            since=(0, 11),
        ),
        "transposed_across_tiles": Case(
            ACROSS, "plgpu.transpose_ref(s, (1, 0, 2))[...]", ("across its tiles",), before=(0, 11)
        ),
        "transposed_where_layouts_are_inferred": Case(
            ACROSS,
            "plgpu.transpose_ref(s, (1, 0, 2))[...]",
            ("tiles of (8, 64)",),
            rule="layout-conflict",
            since=(0, 11),
        ),
        "stride": Case(copy_kernel(use="o[...] = s[::2]", out="(64, 128), jnp.float32"), "s[::2]", ("every n-th",)),
    },
)

CORRECT = {
    "plain": Case(copy_kernel(), rule=""),
    "tiled": Case(_half(), rule=""),
    "parts_on_tiles": Case(
        _half("plgpu.copy_gmem_to_smem(x.at[:, pl.ds(64, 128)], s, bar)", x="(128, 256), jnp.float16"), rule=""
    ),
    "traced_part": Case(
        copy_kernel(
            'plgpu.copy_gmem_to_smem(x.at[:, pl.ds(lax.axis_index("i") * 128, 128)], s, bar)',
            x="(128, 256), jnp.float16",
            smem=TILED,
            use=WIDENED,
            out=SINGLE,
            options=["grid=(2,),", 'grid_names=("i",),'],
        ),
        rule="",
    ),
    "back": Case(copy_kernel(use=STORE.format("s, o")), rule=""),
    "long_and_contiguous": Case(
        copy_kernel(
            "s[...] = x[...]",
            x="(512, 64), jnp.float16",
            wait="pass",
            barrier="plgpu.Barrier()",
            use=STORE.format("s, o"),
        ),
        rule="",
        since=(0, 12),
    ),
    "unused_scratch": Case(statement_kernel(scratch=[TILED]), rule=""),
}
cases("correct copies", CORRECT)


@pytest.mark.parametrize(
    "rule",
    [DIRECTIONS, TYPES, ALIGNMENT, OPTIONS, LENGTHS, SIDES, SLICES, TRANSFORMS, VIEWS, "correct copies"],
)
def test_each_variant(jax_python: JaxPython, rule: str) -> None:
    check(jax_python, rule)
