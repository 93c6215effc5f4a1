"""The rules for wgmma's accumulators and operands, and for what scopes allocate."""

from __future__ import annotations

import pytest
from gpu_check import Case, cases, check
from gpu_kernels import LANE, gpu_kernel, statement_kernel, wgmma_kernel
from jax_environments import JaxPython

THREADS = ["num_threads=2,", 'thread_name="wg",']
PLAIN = "plgpu.wgmma(acc, a_s, b_s)"


def _operands(body: str, *, scratch: tuple[str, ...] = (), options: list[str] | None = None) -> str:
    """A kernel with two operands in SMEM, and ``body`` after they came."""
    names = "".join(f", more{index}" for index in range(len(scratch)))
    text = f"""
def body(a, b, o, a_s, b_s, bar{names}):
    plgpu.copy_gmem_to_smem(a, a_s, bar)
    plgpu.copy_gmem_to_smem(b, b_s, bar)
    plgpu.barrier_wait(bar)

    {body}
"""
    return gpu_kernel(
        text,
        inputs=("(64, 64), jnp.float16", "(64, 128), jnp.float16"),
        out="(64, 128), jnp.float32",
        scratch=(
            "plgpu.SMEM((64, 64), jnp.float16, transforms=T)",
            "plgpu.SMEM((64, 128), jnp.float16, transforms=T)",
            f"plgpu.Barrier(num_arrivals={4 if options else 2})",  # each thread copies both
            *scratch,
        ),
        options=options or (),
    )


COLLECTIVE = cases(
    "accumulator-in-collective-scope",
    {
        "scratch": Case(
            _operands(
                "plgpu.wgmma(more0, a_s, b_s)\n    o[...] = more0[...]",
                scratch=("plgpu.ACC((64, 128), jnp.float32)",),
                options=THREADS,
            ),
            "plgpu.ACC((64, 128), jnp.float32)",
            ("several threads", "pl.run_scoped"),
            fixes=1,
        ),
        "scope": Case(
            _operands(
                "def scope(acc):\n        plgpu.wgmma(acc, a_s, b_s)\n        return acc[...]\n\n"
                '    o[...] = pl.run_scoped(scope, plgpu.ACC((64, 128), jnp.float32), collective_axes="wg")',
                options=THREADS,
            ),
            says=("registers of one thread",),
            fixes=1,
        ),
    },
)

DYNAMIC = cases(
    "accumulator-slice-not-static",
    {
        "loop": Case(
            wgmma_kernel(
                "\n        @pl.loop(0, 2)\n        def _(i):\n"
                "            plgpu.wgmma(acc.at[:, pl.ds(i * 64, 64)], a_s, b_s.at[:, pl.ds(0, 64)])\n"
            ),
            "acc.at[:, pl.ds(i * 64, 64)]",
            ("is traced",),
            fixes=1,
        ),
        "read": Case(
            wgmma_kernel(options=["grid=(2,),", 'grid_names=("i",),']).replace(
                "return acc[...]", 'return acc[:, pl.ds(lax.axis_index("i") * 64, 64)]'
            ),
            'acc[:, pl.ds(lax.axis_index("i") * 64, 64)]',
            ("its index is traced",),
        ),
    },
)

STORED = cases(
    "accumulator-stored-in-part",
    {
        "zeros": Case(
            wgmma_kernel("acc[:, :64] = jnp.zeros((64, 64), jnp.float32)\n        " + PLAIN),
            "acc[:, :64]",
            ("can only be stored to as a whole",),
            fixes=1,
        ),
        "a_row": Case(wgmma_kernel("acc[0] = jnp.zeros((128,), jnp.float32)\n        " + PLAIN), "acc[0]", fixes=1),
    },
)

VALUES = cases(
    "accumulator-value-mismatch",
    {
        "element_type": Case(
            wgmma_kernel("acc[...] = jnp.zeros((64, 128), jnp.float16)\n        " + PLAIN),
            "jnp.zeros((64, 128), jnp.float16)",
            ("float16", "float32"),
            fixes=1,
            related=1,
        ),
        "shape": Case(
            wgmma_kernel("acc[...] = jnp.zeros((64, 64), jnp.float32)\n        " + PLAIN),
            "jnp.zeros((64, 64), jnp.float32)",
            ("(64, 64)", "(64, 128)"),
        ),
        "a_column": Case(
            wgmma_kernel("acc[...] = jnp.zeros((64, 1), jnp.float32)\n        " + PLAIN),
            "jnp.zeros((64, 1), jnp.float32)",
            fixes=1,
        ),
    },
)

NONE = cases(
    "wgmma-without-accumulator",
    {
        "into_the_output": Case(_operands("plgpu.wgmma(o, a_s, b_s)"), "o", ("GMEM",), fixes=1),
        "into_smem": Case(
            _operands(
                "plgpu.wgmma(more0, a_s, b_s)\n    o[...] = more0[...]",
                scratch=("plgpu.SMEM((64, 128), jnp.float32)",),
            ),
            "more0",
            ("SMEM",),
        ),
    },
)

ELSEWHERE = cases(
    "wgmma-operand-not-in-smem",
    {
        "a_value": Case(wgmma_kernel("plgpu.wgmma(acc, a_s, b_s[...])"), "b_s[...]", fixes=1),
        "gmem": Case(wgmma_kernel("plgpu.wgmma(acc, a_s, b)"), "b", ("GMEM",)),
        "left_in_gmem": Case(wgmma_kernel("plgpu.wgmma(acc, a, b_s)"), "a", ("GMEM",)),
    },
)

TRANSPOSED = cases(
    "wgmma-transposed-operand",
    {
        "float32": Case(
            wgmma_kernel(
                a="(64, 32), jnp.float32",
                b="(32, 128), jnp.float32",
                a_scratch="plgpu.SMEM((64, 32), jnp.float32, transforms=F)",
                b_scratch="plgpu.SMEM((32, 128), jnp.float32, transforms=F)",
                head="F = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))\n",
            ),
            "b_s",
            ("float32",),
        ),
    },
)

SCOPES = cases(
    "scope-not-collective",
    {
        "smem": Case(
            statement_kernel(
                "pl.run_scoped(lambda s: s.__setitem__(..., x[...]), plgpu.SMEM((128, 128), jnp.float32))",
                options=THREADS,
            ),
            fixes=1,
        ),
        "barrier": Case(statement_kernel("pl.run_scoped(lambda bar: None, plgpu.Barrier())", options=THREADS), fixes=1),
        "another_axis": Case(
            statement_kernel(
                'pl.run_scoped(lambda bar: None, plgpu.Barrier(), collective_axes="i")',
                options=[*THREADS, "grid=(2,),", 'grid_names=("i",),'],
            ),
            fixes=1,
        ),
    },
)

CORRECT = {
    "product": Case(wgmma_kernel(), rule=""),
    "under_lane_semantics": Case(wgmma_kernel(options=[LANE]), rule=""),
    "static_parts": Case(
        wgmma_kernel(
            "for part in (pl.ds(0, 64), pl.ds(64, 64)):\n            plgpu.wgmma(acc.at[:, part], a_s, b_s.at[:, part])"
        ),
        rule="",
    ),
    "left_in_registers": Case(
        wgmma_kernel("plgpu.wgmma(acc, plgpu.load(a_s, (), layout=plgpu.Layout.WGMMA), b_s)"), rule="", before=(0, 11)
    ),
    "one_scope_for_all": Case(
        statement_kernel('pl.run_scoped(lambda bar: None, plgpu.Barrier(), collective_axes="wg")', options=THREADS),
        rule="",
    ),
    "one_scope_for_each": Case(
        _operands(
            "def scope(acc):\n        plgpu.wgmma(acc, a_s, b_s)\n        return acc[...]\n\n"
            "    o[...] = pl.run_scoped(scope, plgpu.ACC((64, 128), jnp.float32))"
        ),
        rule="",
    ),
}
cases("correct accumulators", CORRECT)


@pytest.mark.parametrize(
    "rule",
    [COLLECTIVE, DYNAMIC, STORED, VALUES, NONE, ELSEWHERE, TRANSPOSED, SCOPES, "correct accumulators"],
)
def test_each_variant(jax_python: JaxPython, rule: str) -> None:
    check(jax_python, rule)
