"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "fori_float_bounds": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.fori_loop(0, 512 / 4, lambda i, a: a, x_ref[...])
                                 #^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["The bound `512 / 4` of this loop is a float"],
        fixes=2,
    ),
    "body_first": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0, :] = lax.fori_loop(lambda i, acc: acc + x_ref[i, :], 0, 8, jnp.zeros(256))
                               #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["is given as a bound of the loop", "the lower and the upper bound first, then the function"],
        fixes=1,
    ),
}


def test_loop_bound_not_integer(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "loop-bound-not-integer", SNIPPETS)
