"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "cost": Snippet(
        """\


if __name__ == "__main__":
    call(copy_kernel, cost_estimate=pl.CostEstimate(flops=1e9, transcendentals=0, bytes_accessed=1.0))
                                                         #^^^
""",
        ["`1e9` is no integer"],
        fixes=1,
    ),
}


def test_cost_estimate_not_integers(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "cost-estimate-not-integers", SNIPPETS)
