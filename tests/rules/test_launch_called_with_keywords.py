"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "kwargs_call": Snippet(
        """\


def f(x):
    return pl.pallas_call(copy_kernel, out_shape=SDS(x.shape, x.dtype))(x=x)
                                                                       #^


if __name__ == "__main__":
    f(X)
""",
        ["A kernel takes its inputs by position, not by name"],
        fixes=1,
    ),
}


def test_launch_called_with_keywords(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "launch-called-with-keywords", SNIPPETS)
