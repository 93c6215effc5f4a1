"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "if_vector": Snippet(
        """\


def k(x_ref, o_ref):
    x = x_ref[...]
    if x > 0:
      #^^^^^
        o_ref[...] = x


if __name__ == "__main__":
    call(k)
""",
        ["The condition `x > 0` has the shape (512, 256)"],
        fixes=1,
    ),
    "while_pred": Snippet(
        """\


def k(x_ref, o_ref):
    a = lax.while_loop(lambda c: c < 4, lambda c: c + 1, x_ref[...])
                                #^^^^^
    o_ref[...] = a


if __name__ == "__main__":
    call(k)
""",
        ["The condition of `jax.lax.while_loop` must return one truth value, a boolean scalar, for"],
        fixes=2,
    ),
    "cond_vec": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.cond(x_ref[...] > 0, lambda: x_ref[...], lambda: -x_ref[...])
                         #^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["The condition `x_ref[...] > 0` has the shape (512, 256)"],
        fixes=3,
    ),
    "when_vec": Snippet(
        """\


def k(x_ref, o_ref):
    @pl.when(x_ref[...] > 0)
            #^^^^^^^^^^^^^^
    def _():
        o_ref[...] = x_ref[...]


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["The condition `x_ref[...] > 0` has the shape (512, 256)"],
        fixes=3,
    ),
}


def test_predicate_not_scalar(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "predicate-not-scalar", SNIPPETS)
