from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import statement_kernel
from jax_environments import JaxPython

RULE = cases(
    "scan-body-result",
    {
        "lambda": Case(
            statement_kernel("lax.scan(lambda c, _: c + 1, 0, None, length=4)"), "c + 1", ("a pair",), fixes=1
        ),
        "function": Case(
            statement_kernel("def step(c, _):\n        return c * 2\n\n    lax.scan(step, 1, None, length=4)"),
            "c * 2",
            ("a pair", "`None` in a kernel"),
            fixes=1,
        ),
        "three": Case(statement_kernel("lax.scan(lambda c, _: (c, c, c), 0, None, length=4)"), says=("a pair",)),
        "a_pair": Case(statement_kernel("lax.scan(lambda c, _: (c + 1, None), 0, None, length=4)"), rule=""),
    },
)


def test_each_variant(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
