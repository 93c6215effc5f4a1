"""The rules for pipelines of Mosaic GPU kernels: their bodies, specs and options."""

from __future__ import annotations

import pytest
from gpu_check import Case, cases, check
from gpu_kernels import PIPELINE_SPEC, pipeline_kernel
from jax_environments import JaxPython

ONE = f"[{PIPELINE_SPEC}]"
BLOCK = "plgpu.BlockSpec((64, 128), lambda i: (i, 0)"
SPECIALIZED = 'memory_registers=40, wg_axis="wg", num_compute_wgs=1'

BODIES = cases(
    "pipeline-body-arity",
    {
        "no_indices": Case(
            pipeline_kernel(step="def step(x_s, o_s):\n        o_s[...] = x_s[...]"),
            "step",
            ("takes 2 parameters", "called with 3", "the indices of the step"),
            fixes=1,
            related=1,
        ),
        "a_lambda": Case(
            pipeline_kernel(step="def put(o_s, x_s):\n        o_s[...] = x_s[...]").replace(
                "        step,\n", "        lambda x_s, o_s: put(o_s, x_s),\n"
            ),
            says=("takes 2 parameters",),
            fixes=1,
        ),
        "too_many": Case(
            pipeline_kernel(step="def step(idx, x_s, y_s, o_s):\n        o_s[...] = x_s[...]"),
            "step",
            ("takes 4 parameters", "called with 3"),
        ),
        "no_carry": Case(
            pipeline_kernel(more="init_carry=0,"),
            "step",
            ("takes 3 parameters", "called with 4"),
        ),
        "specialized": Case(
            pipeline_kernel(step="def step(x_s, o_s):\n        o_s[...] = x_s[...]", specialized=SPECIALIZED),
            "step",
            ("takes 2 parameters",),
            fixes=1,
        ),
    },
)

PARTS = cases(
    "pipeline-invalid",
    {
        "a_ref_less": Case(pipeline_kernel(in_specs=f"[{PIPELINE_SPEC}, {PIPELINE_SPEC}]"), says=("spec",)),
        "a_ref_more": Case(pipeline_kernel(call="(x, x, o)"), says=("spec",)),
        "released_too_late": Case(
            pipeline_kernel(in_specs=f"[{BLOCK}, delay_release=2)]", more="max_concurrent_steps=2,"),
            says=("delay_release",),
            fixes=1,
        ),
        "index_map_with_two_parameters": Case(
            pipeline_kernel(in_specs="[plgpu.BlockSpec((64, 128), lambda i, j: (i, 0))]"),
            "lambda i, j",
            ("takes 2 indices", "has 1 dimension"),
            fixes=1,
        ),
        "index_map_with_one_index": Case(
            pipeline_kernel(in_specs="[plgpu.BlockSpec((64, 128), lambda i: (i,))]"), "(i,)", ("1 index",), fixes=1
        ),
        "block_of_another_rank": Case(
            pipeline_kernel(in_specs="[plgpu.BlockSpec((64,), lambda i: (i,))]"),
            "(64,)",
            ("one entry for each dimension",),
            since=(0, 11),
        ),
        "index_map_of_several_on_a_line": Case(
            pipeline_kernel(
                in_specs="[plgpu.BlockSpec((64, 128), (lambda i, k: (i, 0)) if True else (lambda i: (i, 0)))]"
            ),
            "lambda i, k",
            ("takes 2 indices",),
            fixes=1,
        ),
        "pipeline_mode": Case(
            pipeline_kernel(in_specs=f"[{BLOCK}, pipeline_mode=pl.Buffered(3))]"),
            says=("pipeline_mode",),
            fixes=1,
        ),
        "collective_output": Case(
            pipeline_kernel(out_specs=f'[{BLOCK}, collective_axes=("c",))]'), says=("collective",), fixes=1
        ),
        "grid_of_nothing": Case(pipeline_kernel(grid="(0,)"), says=("step",)),
        "block_that_stays": Case(
            pipeline_kernel(
                in_specs="[plgpu.BlockSpec((64, 128), lambda i: (0, 0))]",
                specialized=SPECIALIZED,
            ),
            "lambda i: (0, 0)",
            ("depend on the step",),
        ),
        "too_many_compute_threads": Case(
            pipeline_kernel(specialized='memory_registers=40, wg_axis="wg", num_compute_wgs=2', out_specs="[]"),
        ),
        "several_with_outputs": Case(
            pipeline_kernel(specialized='memory_registers=40, wg_axis="wg", num_compute_wgs=2'),
        ),
    },
)

CORRECT = {
    "plain": Case(pipeline_kernel(), rule=""),
    "specialized": Case(pipeline_kernel(specialized=SPECIALIZED), rule=""),
    "partial": Case(
        pipeline_kernel(step="def work(scale, idx, x_s, o_s):\n        o_s[...] = x_s[...] * scale").replace(
            "        step,\n", "        functools.partial(work, 2.0),\n"
        ),
        rule="",
    ),
}
cases("correct pipelines", CORRECT)


@pytest.mark.parametrize("rule", [BODIES, PARTS, "correct pipelines"])
def test_each_variant(jax_python: JaxPython, rule: str) -> None:
    check(jax_python, rule)
