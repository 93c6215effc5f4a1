"""The rules for launches of Mosaic GPU kernels: meshes, names, memory, registers, warps, whole programs."""

from __future__ import annotations

import pytest
from gpu_check import Case, cases, check
from gpu_kernels import copy_kernel, gpu_kernel, pipeline_kernel, statement_kernel, tcgen05_kernel, value_kernel
from jax_environments import JaxPython

STEPS = """\

class STEPS:
    count = 4
"""
GRID = ["grid=(4, 2),", 'grid_names=("m", "n"),']
THREADS = ["num_threads=2,", 'thread_name="wg",']

MESHES = cases(
    "mesh-names-mismatch",
    {
        "no_names": Case(
            statement_kernel('lax.axis_index("m")', options=["grid=(4,),"]), says=("grid_names",), fixes=1
        ),
        "a_name_less": Case(
            statement_kernel(options=["grid=(4, 2),", 'grid_names=("m",),']), '("m",)', ("grid_names",), fixes=1
        ),
        "a_name_more": Case(statement_kernel(options=["grid=(4,),", 'grid_names=("m", "n"),']), fixes=1),
        "threads_without_name": Case(statement_kernel(options=["num_threads=2,"]), fixes=1),
        "name_without_threads": Case(statement_kernel(options=['thread_name="wg",']), fixes=1),
        "too_many_threads": Case(
            statement_kernel(options=["num_threads=20,", 'thread_name="wg",']), "20", ("at most 1024: 8",), fixes=1
        ),
        "cluster_without_names": Case(statement_kernel(options=["cluster=(2,),"]), fixes=1),
        "four_dimensions": Case(
            statement_kernel(options=["cluster=(1, 1, 1, 2),", 'cluster_names=("a", "b", "c", "d"),']),
            says=("at most three",),
        ),
    },
)

SIZES = cases(
    "mesh-sizes-not-integers",
    {
        "divided": Case(statement_kernel(options=["grid=(256 / 64,),", 'grid_names=("m",),']), "256 / 64", fixes=1),
        "by_name": Case(
            statement_kernel(options=["grid=(BLOCKS, 2),", 'grid_names=("m", "n"),'], head="BLOCKS = 256 / 64\n"),
            fixes=1,
        ),
        "cluster": Case(statement_kernel(options=["cluster=(4 / 2,),", 'cluster_names=("c",),']), "4 / 2", fixes=1),
    },
)

NAMES = cases(
    "unknown-axis-name",
    {
        "index": Case(statement_kernel('lax.axis_index("k")', options=GRID), '"k"', ('"m"', '"n"'), fixes=1),
        "of_a_kernel_without_grid": Case(statement_kernel('lax.axis_index("m")'), '"m"'),
        "partial": Case(
            gpu_kernel(
                'def rows(axis):\n    return lax.axis_index(axis)\n\n\ndef body(x, o):\n    rows("row")\n'
                "    o[...] = x[...]",
                options=GRID,
            ),
            '"row"',
            fixes=1,
        ),
        "copy_for_no_cluster": Case(
            copy_kernel('plgpu.copy_gmem_to_smem(x, s, bar, collective_axes="c")'), '"c"', fixes=1
        ),
        "barrier_of_no_cluster": Case(
            statement_kernel(
                "plgpu.barrier_arrive(s)\n    plgpu.barrier_wait(s)",
                scratch='[plgpu.ClusterBarrier(collective_axes=("c",))]',
            ),
            '"c"',
        ),
    },
)

BUDGETS = cases(
    "memory-budget-exceeded",
    {
        "smem": Case(
            statement_kernel(scratch=["plgpu.SMEM((256, 256), jnp.float32)"]),
            "plgpu.SMEM((256, 256), jnp.float32)",
            ("KiB",),
        ),
        "buffers_of_a_pipeline": Case(
            pipeline_kernel(more="max_concurrent_steps=STEPS.count,", head=STEPS), "pipeline(x, o)", fixes=1
        ),
        "tmem": Case(tcgen05_kernel(more_scratch=["plgpu.TMEM((128, 512), jnp.float32)"]), says=("512 columns",)),
    },
)

REGISTERS = cases(
    "register-count-invalid",
    {
        "number": Case(
            statement_kernel('plgpu.set_max_registers(100, action="decrease")'), "100", ("steps of 8",), fixes=1
        ),
        "too_many": Case(statement_kernel('plgpu.set_max_registers(264, action="increase")'), "264", fixes=1),
        "action": Case(statement_kernel('plgpu.set_max_registers(40, action="less")'), '"less"', fixes=1),
    },
)

WARPS = cases(
    "warp-code-not-scalar",
    {
        "arrays": Case(
            statement_kernel(
                '\n    @pl.core_map(plgpu.WarpMesh(axis_name="warp"))\n    def _():\n        o[...] = x[...]\n'
            ),
            "x[...]",
        ),
        "from_outside": Case(
            statement_kernel(
                'y = x[...]\n\n    @pl.core_map(plgpu.WarpMesh(axis_name="warp"))\n    def _():\n        o[...] = y\n'
            ),
            says=("from outside",),
        ),
        "nested": Case(
            statement_kernel(
                '\n    @pl.core_map(plgpu.WarpMesh(axis_name="warp"))\n    def _():\n'
                '        @pl.core_map(plgpu.WarpMesh(axis_name="w"))\n        def _():\n            pass\n'
            ),
            'pl.core_map(plgpu.WarpMesh(axis_name="w"))',
            ("inside another",),
            rule="mosaic-gpu-unsupported-operation",
        ),
    },
)

PROGRAMS = cases(
    "mosaic-gpu-launch-unsupported",
    {
        "uneven_unrolling": Case(
            statement_kernel("lax.fori_loop(0, 5, lambda i, c: c + 1, 0, unroll=2)"), says=("unroll",)
        ),
        "print_of_two_arrays": Case(statement_kernel('pl.debug_print("{} {}", x[...], x[...])')),
        "semaphore_core": Case(
            statement_kernel("pl.semaphore_signal(s, 1, core_index=0)", scratch="[plgpu.SemaphoreType.REGULAR]"),
            says=("no cores",),
        ),
        "reshape_in_another_order": Case(
            value_kernel('x[...].reshape(64, 256, order="F")', out="(64, 256), jnp.float32"),
            'x[...].reshape(64, 256, order="F")',
        ),
    },
)

CORRECT = {
    "grid": Case(statement_kernel('lax.axis_index("m") + lax.axis_index("n")', options=GRID), rule=""),
    "names_of_threads": Case(statement_kernel('lax.axis_index("wg")', options=THREADS), rule=""),
    "cluster": Case(
        statement_kernel('lax.axis_index("c")', options=["cluster=(2,),", 'cluster_names=("c",),']), rule=""
    ),
    "registers": Case(statement_kernel('plgpu.set_max_registers(40, action="decrease")', options=THREADS), rule=""),
    "print": Case(statement_kernel('pl.debug_print("{}", lax.axis_index("m"))', options=GRID), rule=""),
    "just_fits": Case(statement_kernel(scratch=["plgpu.SMEM((448, 128), jnp.float32)"]), rule=""),
    "warps": Case(
        statement_kernel(
            '\n    @pl.core_map(plgpu.WarpMesh(axis_name="warp"))\n    def _():\n'
            '        @pl.when(lax.axis_index("warp") == 0)\n        def _():\n            pass\n'
        ),
        rule="",
    ),
}
cases("correct launches", CORRECT)


@pytest.mark.parametrize("rule", [MESHES, SIZES, NAMES, BUDGETS, REGISTERS, WARPS, PROGRAMS, "correct launches"])
def test_each_variant(jax_python: JaxPython, rule: str) -> None:
    check(jax_python, rule)
