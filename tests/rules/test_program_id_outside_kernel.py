"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "pid_outside": Snippet(
        """\


def f(x):
    pid = pl.program_id(0)
         #^^^^^^^^^^^^^^^^
    return call(lambda x_ref, o_ref: None)


if __name__ == "__main__":
    f(X)
""",
        ["`pl.program_id(0)` is called outside of a kernel"],
    ),
}


def test_program_id_outside_kernel(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "program-id-outside-kernel", SNIPPETS)
