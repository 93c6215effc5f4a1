"""The rules for barriers of Mosaic GPU kernels: their kinds, numbers, and what takes them."""

from __future__ import annotations

import pytest
from gpu_check import Case, cases, check
from gpu_kernels import LANE, copy_kernel, gpu_kernel, statement_kernel
from jax_environments import JaxPython

ARRAYS = cases(
    "barrier-array-not-indexed",
    {
        "wait": Case(
            copy_kernel("plgpu.copy_gmem_to_smem(x, s, bar.at[0])", barrier="plgpu.Barrier(num_barriers=2)"),
            "bar",
            ("2 barriers",),
            fixes=1,
            related=1,
        ),
        "copy": Case(
            copy_kernel(barrier="plgpu.Barrier(num_barriers=2)", wait="plgpu.barrier_wait(bar.at[0])"),
            "bar",
            fixes=1,
        ),
        "arrive": Case(
            statement_kernel(
                "plgpu.barrier_arrive(s)\n    plgpu.barrier_wait(s.at[0])",
                scratch="[plgpu.Barrier(num_barriers=2)]",
            ),
            "s",
            fixes=1,
        ),
        "under_lane_semantics": Case(
            copy_kernel(barrier="plgpu.Barrier(num_barriers=2)", wait="plgpu.barrier_wait(bar.at[0])", options=[LANE]),
            "bar",
            fixes=1,
        ),
    },
)

INVALID = cases(
    "barrier-invalid",
    {
        "no_arrival": Case(copy_kernel(barrier="plgpu.Barrier(num_arrivals=0)"), "0", ("at least one",), fixes=1),
        "too_many": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x, s, bar.at[0])",
                barrier="plgpu.Barrier(num_barriers=40)",
                wait="plgpu.barrier_wait(bar.at[0])",
            ),
            "40",
            ("32",),
        ),
        "axes_that_are_no_tuple": Case(
            statement_kernel(
                scratch='[plgpu.ClusterBarrier(collective_axes="c")]',
                options=["cluster=(2,),", 'cluster_names=("c",),'],
            ),
            '"c"',
            fixes=1,
        ),
    },
)

NONE = cases(
    "not-a-barrier",
    {
        "parameters_swapped": Case(
            gpu_kernel(
                "def body(x, o, bar, s):\n    plgpu.copy_gmem_to_smem(x, s, bar)\n    plgpu.barrier_wait(bar)\n"
                "    o[...] = s[...]",
                scratch=("plgpu.SMEM((128, 128), jnp.float32)", "plgpu.Barrier()"),
            ),
            "s",
            ("is a barrier, not memory", "in the order of the scratch types"),
            fixes=1,
            related=1,
            since=(0, 11),
        ),
        "parameters_swapped_in_old_versions": Case(
            gpu_kernel(
                "def body(x, o, bar, s):\n    plgpu.copy_gmem_to_smem(x, s, bar)\n    plgpu.barrier_wait(bar)\n"
                "    o[...] = s[...]",
                scratch=("plgpu.SMEM((128, 128), jnp.float32)", "plgpu.Barrier()"),
            ),
            "s[...]",
            ("has no value",),
            before=(0, 11),
        ),
        "written_to_gmem": Case(
            copy_kernel(use="o[...] = s[...]\n    plgpu.commit_smem()\n    plgpu.copy_smem_to_gmem(bar, o)"),
            "bar",
            ("is a barrier, not memory",),
        ),
        "wait_on_a_buffer": Case(
            copy_kernel(wait="plgpu.barrier_wait(s)"),
            "s",
            ("f32[128,128] in SMEM", "plgpu.Barrier"),
            fixes=1,
            related=1,
        ),
        "copy_onto_a_buffer": Case(
            copy_kernel("plgpu.copy_gmem_to_smem(x, s, s)"), "s", ("no barrier but a ref",), fixes=1
        ),
        "read_as_an_array": Case(
            copy_kernel(wait="bar[...]"), "bar[...]", ("has no value", "barrier_wait"), fixes=1, related=1
        ),
        "computed_with": Case(copy_kernel(use="o[...] = s[...] + bar[...]"), "bar[...]", ("has no value",)),
    },
)

COPIES = cases(
    "copy-without-barrier",
    {
        "left_out": Case(copy_kernel("plgpu.copy_gmem_to_smem(x, s)"), fixes=1),
        "none": Case(copy_kernel("plgpu.copy_gmem_to_smem(x, s, None)"), fixes=1),
        "keywords": Case(copy_kernel("plgpu.copy_gmem_to_smem(src=x, dst=s)"), fixes=1),
        "of_several": Case(
            gpu_kernel(
                "def body(x, o, s, t, one, two):\n    plgpu.copy_gmem_to_smem(x, s, one)\n"
                "    plgpu.copy_gmem_to_smem(x, t)\n    plgpu.barrier_wait(one)\n    plgpu.barrier_wait(two)\n"
                "    o[...] = s[...] + t[...]",
                scratch=(*["plgpu.SMEM((128, 128), jnp.float32)"] * 2, *["plgpu.Barrier()"] * 2),
            ),
        ),
    },
)

TWO = "plgpu.SMEM((2, 128, 128), jnp.float32)"

INDICES = cases(
    "index-out-of-bounds",
    {
        "barrier": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x, s, bar.at[2])",
                barrier="plgpu.Barrier(num_barriers=2)",
                wait="plgpu.barrier_wait(bar.at[0])",
            ),
            "2",
            ("2 elements, 0 to 1",),
        ),
        "barrier_of_an_unrolled_loop": Case(
            copy_kernel(
                "for slot in range(3):\n        plgpu.copy_gmem_to_smem(x, s, bar.at[slot])",
                barrier="plgpu.Barrier(num_barriers=2)",
                wait="plgpu.barrier_wait(bar.at[0])",
            ),
            "slot",
            ("The index is 2",),
        ),
        "the_last_buffer": Case(
            copy_kernel("plgpu.copy_gmem_to_smem(x, s.at[1], bar)", smem=TWO, use="o[...] = s[-1]"),
            "-1",
            ("not indexed from the end",),
            fixes=1,
        ),
        "the_last_barrier": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x, s, bar.at[-1])",
                barrier="plgpu.Barrier(num_barriers=2)",
                wait="plgpu.barrier_wait(bar.at[1])",
            ),
            "-1",
            ("not indexed from the end",),
            fixes=1,
        ),
        "a_branch": Case(
            copy_kernel(
                "plgpu.copy_gmem_to_smem(x, s.at[0], bar)",
                smem=TWO,
                use="pl.when(lax.axis_index('wg') > 0)(lambda: o.__setitem__(..., s[5]))",
                options=["num_threads=1,", 'thread_name="wg",'],
            ),
            rule="",
        ),
    },
)

CORRECT = {
    "one_of_several": Case(
        copy_kernel(
            "plgpu.copy_gmem_to_smem(x, s, bar.at[1])",
            barrier="plgpu.Barrier(num_barriers=2)",
            wait="plgpu.barrier_wait(bar.at[1])",
        ),
        rule="",
    ),
    "arrivals_of_threads": Case(
        statement_kernel(
            "plgpu.barrier_arrive(s)\n    plgpu.barrier_wait(s)",
            scratch="[plgpu.Barrier(num_arrivals=2)]",
            options=["num_threads=2,", 'thread_name="wg",'],
        ),
        rule="",
    ),
    "of_a_cluster": Case(
        statement_kernel(
            "plgpu.barrier_arrive(s)\n    plgpu.barrier_wait(s)",
            scratch='[plgpu.ClusterBarrier(collective_axes=("c",))]',
            options=["cluster=(2,),", 'cluster_names=("c",),'],
        ),
        rule="",
    ),
}
cases("correct barriers", CORRECT)


@pytest.mark.parametrize("rule", [ARRAYS, INVALID, NONE, COPIES, INDICES, "correct barriers"])
def test_each_variant(jax_python: JaxPython, rule: str) -> None:
    check(jax_python, rule)
