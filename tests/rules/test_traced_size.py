"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "ds_dyn_size": Snippet(
        """\


def k(x_ref, o_ref):
    n = pl.program_id(0) + 1
    o_ref[pl.ds(0, n)] = x_ref[pl.ds(0, n)]
                                       #^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`n` is a size that the kernel computes"],
    ),
    "zeros_dyn": Snippet(
        """\


def k(x_ref, o_ref):
    n = pl.program_id(0) + 1
    o_ref[...] = jnp.zeros((n, 2))
                           #^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`n` is a size that the kernel computes"],
    ),
    "arange_dyn": Snippet(
        """\


def k(x_ref, o_ref):
    n = pl.program_id(0) + 1
    o_ref[...] = jnp.arange(n)
                           #^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["`n` is a size that the kernel computes"],
    ),
}


def test_traced_size(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "traced-size", SNIPPETS)
