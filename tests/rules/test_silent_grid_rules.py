"""The rules for grids whose steps undo, miss or share each other's work without being refused."""

from __future__ import annotations

from gpu_check import Case, check
from jax_environments import JaxPython
from silent_kernels import tpu

SUM = """
def kernel(x_ref, o_ref):
    {body}


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        grid=(x.shape[0] // 128,),
        in_specs=[pl.BlockSpec((128, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),{more}
    )(x)
"""
CALL = "run(jnp.ones((512, 256)))"
TOTAL = "jnp.sum(x_ref[...], axis=0, keepdims=True)"
WHEN = "@pl.when({})\n    def _():\n        {}\n\n    "
ZERO = WHEN.format("pl.program_id(0) == 0", "o_ref[...] = jnp.zeros_like(o_ref)")


def summed(body: str, more: str = "") -> str:
    return tpu(SUM.format(body=body, more=more), CALL)


def on_triton(text: str) -> str:
    return text.replace("tpu as pltpu", "triton as plt")


TRITON = "\n        compiler_params=plt.CompilerParams({}),"

OVERWRITTEN = {
    "sum": Case(
        summed(f"o_ref[...] = {TOTAL}"),
        "o_ref[...]",
        ("stored anew in the 4 steps of axis 0", "only what the last one stores is left"),
        fixes=1,
        related=1,
    ),
    "maximum": Case(summed("o_ref[...] = jnp.max(x_ref[...], axis=0, keepdims=True)"), "o_ref[...]"),
    "on_triton": Case(on_triton(summed(f"o_ref[...] = {TOTAL}", TRITON.format("num_warps=4"))), "o_ref[...]"),
}

CARRIES = {
    "output": Case(
        summed(
            f"{ZERO}o_ref[...] += {TOTAL}",
            '\n        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),',
        ),
        '"parallel"',
        ("An output block carries a value from one step of axis 0", "has to be `arbitrary`"),
        fixes=1,
        related=1,
    ),
    "scratch": Case(
        summed(
            f"{ZERO.replace('o_ref', 'acc_ref')}acc_ref[...] += {TOTAL}\n    o_ref[...] = acc_ref[...]",
            "\n        scratch_shapes=[pltpu.VMEM((1, 256), jnp.float32)],"
            "\n        compiler_params=pltpu.CompilerParams(dimension_semantics=[pltpu.PARALLEL]),",
        ).replace("o_ref):", "o_ref, acc_ref):"),
        "pltpu.PARALLEL",
        ("Scratch memory carries",),
        fixes=1,
    ),
}

PROGRAMS = {
    "read_and_stored": Case(
        on_triton(summed(f"{ZERO}o_ref[...] += {TOTAL}", TRITON.format("num_warps=4"))),
        "o_ref[...]",
        ("changes block (0, 0) of output 0 in several programs", "axis 0"),
    ),
    "atomic": Case(
        on_triton(
            summed(f"{ZERO}plt.atomic_add(o_ref, (slice(None), slice(None)), {TOTAL})", TRITON.format("num_warps=4"))
        ),
        f"plt.atomic_add(o_ref, (slice(None), slice(None)), {TOTAL})",
    ),
}

SHIFT = """
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: ({read}, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        input_output_aliases={{0: 0}},
    )(x)
"""
ALIASED = {
    "reversed": Case(
        tpu(SHIFT.format(read="3 - i"), "run(jnp.ones((32, 128)))"),
        "{0: 0}",
        ("step (2,) of the grid reads block (1, 0), which step (1,) has written",),
        related=1,
    ),
    "clamped": Case(
        tpu(SHIFT.format(read="jnp.maximum(i - 1, 0)"), "run(jnp.ones((32, 128)))"),
        "{0: 0}",
        ("step (2,) of the grid reads block (1, 0)",),
    ),
}

WARPS = {
    "six": Case(
        on_triton(summed(f"o_ref[...] = {TOTAL}", TRITON.format("num_warps=6")))
        .replace("lambda i: (0, 0)", "lambda i: (i, 0)")
        .replace("(1, x.shape[1]), x.dtype", "(4, x.shape[1]), x.dtype"),
        "6",
        ("a power of two",),
        fixes=2,
    ),
}

UNREACHED = {
    "never": Case(
        summed(WHEN.format("pl.program_id(0) == 4", f"o_ref[...] = {TOTAL}").rstrip()),
        "pl.program_id(0) == 4",
        ("No step of the grid stores to output 0",),
        fixes=1,
        related=1,
    ),
    "one_block": Case(
        summed(WHEN.format("pl.program_id(0) > 0", "o_ref[...] = x_ref[...]").rstrip())
        .replace("lambda i: (0, 0)", "lambda i: (i, 0)")
        .replace("(1, x.shape[1])", "(128, x.shape[1])")
        .replace("ShapeDtypeStruct((128,", "ShapeDtypeStruct((512,"),
        "pl.program_id(0) > 0",
        ("Block (0, 0) of output 0 is never stored to", "in step (0,)"),
    ),
}

ROWS = """
def kernel(x_ref, o_ref):
    i = pl.program_id(0)
    {body}


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((32, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
    )(x)
"""


def rows(body: str) -> str:
    return tpu(ROWS.format(body=body), "run(jnp.ones((32, 128)))")


OUTSIDE = {
    "slice": Case(
        rows("o_ref[...] = x_ref[pl.ds((i + 1) * 8, 8), :]"),
        "pl.ds((i + 1) * 8, 8)",
        ("In step (3,) of the grid this is at elements 32 to 39 of dimension 0, which has 32",),
    ),
    "loop": Case(
        rows("@pl.loop(0, 9)\n    def _(row):\n        o_ref[row, :] = x_ref[i, :]"),
        "row",
        ("element 8 of dimension 0, which has 8",),
    ),
    "loop_and_step": Case(
        rows(
            "def add(j, total):\n        return total + x_ref[pl.ds(i * 8 + j + 1, 1), :]\n\n"
            "    o_ref[...] = jax.lax.fori_loop(0, 8, add, jnp.zeros((8, 128)))"
        ),
        "pl.ds(i * 8 + j + 1, 1)",
        ("In step (3,)", "element 32"),
    ),
    "condition": Case(
        rows(
            "@pl.when(i > 0)\n    def _():\n        o_ref[...] = x_ref[pl.ds(i * 8 + 1, 8), :]\n\n"
            "    o_ref[...] = x_ref[:8]"
        ),
        "pl.ds(i * 8 + 1, 8)",
        ("In step (3,)",),
    ),
    "lanes": Case(
        on_triton(rows("o_ref[i * 3 + jnp.arange(8), :] = x_ref[:8, :]")).replace(
            "(4,),", "(4,),\n" + TRITON.format(""), 1
        ),
        "i * 3 + jnp.arange(8)",
        ("In step (1,)",),
    ),
    "before_the_start": Case(
        rows("o_ref[...] = x_ref[pl.ds(i * 8 - 1, 8), :]"), "pl.ds(i * 8 - 1, 8)", ("elements -1 to 6",)
    ),
}


def test_accesses_outside_at_some_step(jax_python: JaxPython) -> None:
    check(jax_python, "index-out-of-bounds", OUTSIDE)


def test_blocks_that_later_steps_store_anew(jax_python: JaxPython) -> None:
    check(jax_python, "output-block-overwritten", OVERWRITTEN)


def test_parallel_axes_that_carry_a_value(jax_python: JaxPython) -> None:
    check(jax_python, "parallel-axis-carries", CARRIES)


def test_accumulations_across_programs(jax_python: JaxPython) -> None:
    check(jax_python, "accumulation-across-programs", PROGRAMS)


def test_blocks_that_are_overwritten_in_place(jax_python: JaxPython) -> None:
    check(jax_python, "aliased-block-overwritten", ALIASED)


def test_numbers_of_warps(jax_python: JaxPython) -> None:
    check(jax_python, "triton-warps-not-power-of-two", WARPS)


def test_outputs_stored_under_false_conditions(jax_python: JaxPython) -> None:
    check(jax_python, "output-never-written", UNREACHED)
