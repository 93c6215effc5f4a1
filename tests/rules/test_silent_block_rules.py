"""The rules for what a kernel with blocks does wrong without being refused."""

from __future__ import annotations

from gpu_check import Case, check
from jax_environments import JaxPython
from silent_kernels import tpu

TRITON = ("tpu as pltpu", "triton as plgpu")

SUM = """
def kernel(x_ref, o_ref):
    {start}{add}


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        grid=(x.shape[0] // 128,),
        in_specs=[pl.BlockSpec((128, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),
    )(x)
"""
SUM_CALL = "run(jnp.ones((512, 256)))"
ADD = "o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)"
MATMUL = """
def kernel(a_ref, b_ref, o_ref{scratch_parameter}):
    {start}
    {add}{store}


def run(a, b, bs=128):
    m, k = a.shape
    n = b.shape[1]
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.float32),
        {more}grid=({grid}),
        in_specs=[pl.BlockSpec((bs, bs), lambda {p}: (i, k)), pl.BlockSpec((bs, bs), lambda {p}: (k, j))],
        out_specs=pl.BlockSpec((bs, bs), lambda {p}: (i, j)),
    )(a, b)
"""
MATMUL_CALL = "run(jnp.ones((512, 256)), jnp.ones((256, 384)))"
DOT = "jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)"


def start(axis: int, ref: str = "o_ref") -> str:
    return f"@pl.when(pl.program_id({axis}) == 0)\n    def _():\n        {ref}[...] = jnp.zeros_like({ref})\n"


def matmul(grid: str, p: str, axis: int | None, more: str = "", add: str = f"o_ref[...] += {DOT}") -> str:
    text = MATMUL.format(
        grid=grid,
        p=p,
        start=start(axis) if axis is not None else "",
        add=add,
        store="",
        scratch_parameter="",
        more=more,
    )
    return tpu(text, MATMUL_CALL)


SCRATCH = MATMUL.format(
    grid="m // bs, n // bs, k // bs",
    p="i, j, k",
    start="{start}",
    add=f"acc_ref[...] += {DOT}",
    store="\n\n    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)\n    def _():\n"
    "        o_ref[...] = acc_ref[...]",
    scratch_parameter=", acc_ref",
    more="scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],\n        ",
)

STARTS = {
    "never": Case(tpu(SUM.format(start="", add=ADD), SUM_CALL), "o_ref[...]", ("`o_ref[...]` is added to",), fixes=1),
    "written_out": Case(
        tpu(SUM.format(start="", add="o_ref[...] = o_ref[...] + jnp.sum(x_ref[...], axis=0, keepdims=True)"), SUM_CALL),
        "o_ref[...]",
        fixes=1,
    ),
    "maximum": Case(
        tpu(
            SUM.format(
                start="", add="o_ref[...] = jnp.maximum(o_ref[...], jnp.max(x_ref[...], axis=0, keepdims=True))"
            ),
            SUM_CALL,
        ),
        "o_ref[...]",
        fixes=1,
    ),
    "several_axes": Case(matmul("m // bs, n // bs, k // bs", "i, j, k", None), "o_ref[...]", fixes=1),
    "wrong_axis": Case(
        matmul("m // bs, n // bs, k // bs", "i, j, k", 0),
        "pl.program_id(0) == 0",
        ("in step (1, 0, 0)", "index of axis 2 is 0"),
        fixes=1,
        related=1,
    ),
    "scratch": Case(tpu(SCRATCH.format(start=""), MATMUL_CALL), "acc_ref[...]", ("scratch memory",), fixes=1),
    "scratch_in_other_steps": Case(
        tpu(SCRATCH.format(start=start(2, "acc_ref").replace("== 0", "== 1")), MATMUL_CALL),
        "pl.program_id(2) == 1",
        ("in step (0, 0, 0)",),
        fixes=1,
    ),
    "in_a_loop": Case(
        tpu(
            """
            def kernel(x_ref, o_ref):
                @pl.loop(0, 8)
                def _(row):
                    o_ref[...] += x_ref[pl.ds(row, 1), :]


            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((1, 128), x.dtype))(x)
            """,
            "run(jnp.ones((8, 128)))",
        ),
        "o_ref[...]",
        fixes=1,
    ),
    "started_too_late": Case(
        tpu(
            SUM.format(
                start="",
                add=ADD + "\n\n    @pl.when(pl.program_id(0) == 0)\n    def _():\n"
                "        o_ref[...] = jnp.zeros_like(o_ref)",
            ),
            SUM_CALL,
        ),
        "o_ref[...]",
        ("in step (0)",),
    ),
    "renamed": Case(
        tpu(SUM.format(start="", add=ADD), SUM_CALL)
        .replace("pallas as pl\n", "pallas as pallas\n")
        .replace("pl.", "pallas.")
        .replace("tpu as pltpu", "tpu as t"),
        "o_ref[...]",
        fixes=1,
    ),
}

ORDERS = {
    "reduction_first": Case(
        matmul("k // bs, m // bs, n // bs", "k, i, j", 0),
        "k // bs",
        ("axis 0 of the grid (`k // bs`)", "in step (1, 0, 0)"),
        fixes=1,
        related=2,
    ),
    "reduction_in_the_middle": Case(matmul("m // bs, k // bs, n // bs", "i, k, j", 1), "k // bs", fixes=1),
    "with_semantics": Case(
        matmul(
            "k // bs, m // bs, n // bs",
            "k, i, j",
            0,
            "compiler_params=pltpu.CompilerParams("
            "dimension_semantics=('arbitrary', 'parallel', 'parallel')),\n        ",
        ),
        "k // bs",
        fixes=1,
    ),
    "grid_by_name": Case(
        matmul("k // bs, m // bs, n // bs", "k, i, j", 0)
        .replace("grid=(k // bs, m // bs, n // bs),", "grid=steps,")
        .replace("    return pl.pallas_call", "    steps = (k // bs, m // bs, n // bs)\n    return pl.pallas_call"),
        "k // bs",
        fixes=1,
    ),
}

COPY = """
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


BLOCK = 128


def run(x):
    rows, columns = x.shape
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=({grid},),
        in_specs=[pl.BlockSpec((BLOCK, columns), lambda i: ({index}, 0))],
        out_specs=pl.BlockSpec((BLOCK, columns), lambda i: ({out}, 0)),
    )(x)
"""


def copy(grid: str = "rows // BLOCK", index: str = "i", out: str = "i", rows: int = 512) -> str:
    return tpu(COPY.format(grid=grid, index=index, out=out), f"run(jnp.ones(({rows}, 256)))")


OUTSIDE = {
    "offsets": Case(copy(index="i * BLOCK"), "i * BLOCK", ("block 128 of input 0", "not offsets"), fixes=1),
    "factor_first": Case(copy(index="BLOCK * i"), "BLOCK * i", fixes=1),
    "literal": Case(copy(index="i * 128"), "i * 128", fixes=1),
    "one_too_far": Case(copy(index="i + 1"), "i + 1", ("In step (3,)", "block 4"), fixes=1),
    "negative": Case(copy(index="i - 1"), "i - 1", ("block -1",), fixes=1),
    "too_many_steps": Case(copy(grid="8"), "8", ("`8` is 8 steps", "4 blocks of 128"), fixes=1),
    "one_step_more": Case(copy(grid="rows // BLOCK + 1"), "rows // BLOCK + 1", fixes=1),
    "no_backend": Case(
        copy(index="i * BLOCK").replace("from jax.experimental.pallas import tpu as pltpu\n", ""), "i * BLOCK", fixes=1
    ),
    "triton": Case(copy(index="i * BLOCK").replace(*TRITON), "i * BLOCK", fixes=1, since=(0, 11)),
    "index_map_by_def": Case(
        copy(index="i")
        .replace("lambda i: (i, 0))],", "rows_of)],", 1)
        .replace("def run(x):", "def rows_of(i):\n    return (i * BLOCK, 0)\n\n\ndef run(x):"),
        "i * BLOCK",
        fixes=1,
    ),
}

WRITTEN = {
    "rounded_down": Case(
        copy(rows=1000), "rows // BLOCK", ("8 blocks of 128", "elements 896 to 999"), fixes=1, related=1
    ),
    "by_name": Case(
        copy(grid="steps", rows=1000).replace("    return pl", "    steps = rows // BLOCK\n    return pl"),
        "steps",
        fixes=1,
    ),
    "too_few_steps": Case(copy(grid="2"), "2", ("is 2 steps",), fixes=1),
    "columns_left_out": Case(
        copy().replace("BLOCK, columns", "BLOCK, 128"), "0", ("dimension 1", "elements 128 to 255")
    ),
    "every_other_block": Case(copy(grid="2", index="2 * i", out="2 * i"), "2 * i", ("never written",)),
    "scalar_grid": Case(
        copy(rows=1000).replace("grid=(rows // BLOCK,)", "grid=rows // BLOCK"), "rows // BLOCK", fixes=1
    ),
    "never_stored": Case(
        tpu(
            """
            def kernel(x_ref, o_ref):
                y = x_ref[...] * 2.0


            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            "run(jnp.ones((8, 128)))",
        ),
        "o_ref",
        ("`o_ref` (output 0) is never stored to",),
        severity="warning",
    ),
    "unused_on_purpose": Case(
        tpu(
            """
            def kernel(x_ref, _):
                pl.debug_print("once")


            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            "run(jnp.ones((8, 128)))",
        ),
        "_",
        severity="hint",
    ),
    "name_assigned_to": Case(
        tpu(
            """
            def kernel(x_ref, o_ref):
                o_ref = x_ref[...] * 2.0


            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            "run(jnp.ones((8, 128)))",
        ),
        "o_ref",
        ("is never stored to", "This gives the name `o_ref` another meaning"),
        fixes=1,
    ),
}

PADDED = SUM.replace("grid=(x.shape[0] // 128,)", "grid=(pl.cdiv(x.shape[0], 128),)")
PADDED_CALL = "run(jnp.ones((1000, 256)))"


def padded(add: str = ADD, begin: str = start(0)) -> str:
    return tpu(PADDED.format(start=begin + "\n    ", add=add), PADDED_CALL)


PADDING = {
    "sum": Case(
        padded(),
        "jnp.sum(x_ref[...], axis=0, keepdims=True)",
        ("blocks of 128", "1000 elements", "104 of them and 24 undefined ones, which are summed up too"),
        fixes=1,
        related=1,
    ),
    "after_elementwise_work": Case(
        padded("o_ref[...] += jnp.sum(jnp.exp(x_ref[...] * 0.5), axis=0, keepdims=True)"),
        fixes=1,
    ),
    "maximum": Case(
        padded(
            "o_ref[...] = jnp.maximum(o_ref[...], jnp.max(x_ref[...], axis=0, keepdims=True))",
            start(0).replace("jnp.zeros_like(o_ref)", "jnp.full_like(o_ref, -jnp.inf)"),
        ),
        "jnp.max(x_ref[...], axis=0, keepdims=True)",
        ("taken into the maximum",),
        fixes=1,
    ),
    "through_a_name": Case(
        padded("value = x_ref[...]\n    o_ref[...] += jnp.sum(value, axis=0, keepdims=True)"),
        "jnp.sum(value, axis=0, keepdims=True)",
        fixes=1,
    ),
    "matrix_product": Case(
        matmul("pl.cdiv(m, bs), pl.cdiv(n, bs), pl.cdiv(k, bs)", "i, j, k", 2).replace("256", "200"),
        DOT,
        ("multiplied and summed up",),
        fixes=1,
    ),
}

DMA = """
def kernel(x_ref, o_ref, buf, sem):
    {copy}
    o_ref[...] = buf[...] * 2.0{after}


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((32, 128), x.dtype), pltpu.SemaphoreType.DMA],
    )(x)
"""


def dma(copy: str, after: str = "") -> str:
    return tpu(DMA.format(copy=copy, after=after), "run(jnp.ones((64, 128)))")


MAKE = "pltpu.make_async_copy(x_ref.at[pl.ds(0, 32), :], buf, sem)"
WAITS = {
    "no_name": Case(dma(f"{MAKE}.start()"), f"{MAKE}.start()", ("nothing in the kernel waits for",), fixes=1),
    "name": Case(dma(f"copy = {MAKE}\n    copy.start()"), "copy.start()", fixes=1),
    "async_copy": Case(
        dma("copy = pltpu.async_copy(x_ref.at[pl.ds(0, 32), :], buf, sem)"),
        "pltpu.async_copy(x_ref.at[pl.ds(0, 32), :], buf, sem)",
        fixes=1,
    ),
    "on_one_line": Case(dma(f"copy = {MAKE}; copy.start()  # go"), "copy.start()", fixes=1),
    "one_of_two": Case(
        dma(
            f"first, second = ({MAKE.replace('sem)', 'sem.at[n])')} for n in range(2))\n"
            "    first.start()\n    second.start()\n    first.wait()"
        ).replace("SemaphoreType.DMA]", "SemaphoreType.DMA((2,))]"),
        "second.start()",
        ("nothing in the kernel waits for",),
        fixes=1,
    ),
}
UNSTARTED = {
    "name": Case(dma(f"copy = {MAKE}\n    copy.wait()"), "copy.wait()", ("never ends",), fixes=1),
}
READS = {
    "waited_too_late": Case(
        dma(f"copy = {MAKE}\n    copy.start()", "\n    copy.wait()"),
        "copy.start()",
        ("`buf` is read on line 12",),
        fixes=1,
    ),
}


def test_accumulators_without_a_start(jax_python: JaxPython) -> None:
    check(jax_python, "accumulator-without-start", STARTS)


def test_accumulations_that_are_not_innermost(jax_python: JaxPython) -> None:
    check(jax_python, "accumulation-not-innermost", ORDERS)


def test_blocks_outside_their_arrays(jax_python: JaxPython) -> None:
    check(jax_python, "block-outside-array", OUTSIDE)


def test_outputs_that_are_never_written(jax_python: JaxPython) -> None:
    check(jax_python, "output-never-written", WRITTEN)


def test_reductions_over_padding(jax_python: JaxPython) -> None:
    check(jax_python, "reduction-over-padding", PADDING)


def test_copies_never_waited_for(jax_python: JaxPython) -> None:
    check(jax_python, "copy-never-waited", WAITS)


def test_waits_for_copies_never_started(jax_python: JaxPython) -> None:
    check(jax_python, "copy-never-started", UNSTARTED)


def test_reads_before_the_wait(jax_python: JaxPython) -> None:
    check(jax_python, "read-before-wait", READS)
