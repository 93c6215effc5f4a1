"""``plgpu.wgmma`` into what ``pl.run_state`` made of an array."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import product_kernel, wgmma_kernel
from jax_environments import JaxPython


def _kernel(call: str, scope: str = "def scope(acc):\n        plgpu.wgmma(acc, a_s, b_s)") -> str:
    return product_kernel(f"    {scope}\n\n    o[...] = {call}")


RULE = cases(
    "wgmma-without-accumulator",
    {
        "value_read_in_the_call": Case(
            _kernel("pl.run_state(scope)(c[...])"),
            "c[...]",
            ("`acc` starts as the array `c[...]`", "`plgpu.ACC.init(c[...])`"),
            fixes=1,
            related=1,
            since=(0, 12),
        ),
        "zeros": Case(
            _kernel("pl.run_state(scope)(jnp.zeros((64, 128), jnp.float32))"),
            "jnp.zeros((64, 128), jnp.float32)",
            ("`plgpu.ACC.init(",),
            fixes=1,
            related=1,
        ),
        "accumulator_among_the_operands": Case(
            wgmma_kernel("plgpu.wgmma(a_s, acc, b_s)"),
            "a_s",
            ("the accumulator first", "`acc` is the accumulator"),
            fixes=1,
            related=1,
        ),
        "start_value_of_another_shape": Case(
            _kernel("pl.run_state(scope)(plgpu.ACC.init(jnp.zeros((128, 64), jnp.float32)))"),
            "acc",
            ("`acc` is (128, 64)",),
            rule="wgmma-shape-mismatch",
            related=3,
        ),
        "lambda": Case(
            _kernel("pl.run_state(lambda acc: plgpu.wgmma(acc, a_s, b_s))(c[...])", scope="pass"),
            "c[...]",
            ("`acc` starts as the array",),
            related=1,
            since=(0, 11),
        ),
    },
)


def test_each_variant(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
