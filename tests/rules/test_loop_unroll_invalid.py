from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import statement_kernel
from jax_environments import JaxPython


def _loop(bound: str, unroll: str) -> str:
    return statement_kernel(f"lax.fori_loop(0, {bound}, lambda i, c: c + 1, 0, unroll={unroll})")


RULE = cases(
    "loop-unroll-invalid",
    {
        "unknown_steps": Case(
            _loop("x[0, 0].astype(jnp.int32)", "2"), "2", ("number of steps is not known",), fixes=1, related=1
        ),
        "nothing": Case(_loop("4", "0"), "0", ("positive integer",), fixes=1),
        "a_float": Case(_loop("4", "2.0"), "2.0", ("positive integer",), fixes=1),
        "negative": Case(_loop("4", "-1"), "-1", ("positive integer",), fixes=1),
        "triton": Case(
            _loop("x[0, 0].astype(jnp.int32)", "2")
            .replace("plgpu.kernel", "pl.pallas_call")
            .replace("out_type", "out_shape"),
            "2",
            fixes=0,
        ),
        "whole": Case(_loop("4", "True"), rule=""),
        "even": Case(_loop("4", "2"), rule=""),
    },
)


def test_each_variant(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
