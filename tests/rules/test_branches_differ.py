"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "cond_types": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.cond(pl.program_id(0) == 0, lambda: x_ref[...], lambda: x_ref[0])
                                                                            #^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["The branches return float32[512,256] and float32[256]"],
    ),
    "cond_dtype": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.cond(
        pl.program_id(0) == 0, lambda x: x, lambda x: x.astype(jnp.bfloat16), x_ref[...]
                                                     #^^^^^^^^^^^^^^^^^^^^^^
    )


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["The branches return float32[512,256] and bfloat16[512,256]"],
        fixes=1,
    ),
    "cond_weak": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * lax.cond(pl.program_id(0) == 0, lambda: 1.0, lambda: 0)
                                                                                  #^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["The branches return float32[] and int32[]"],
        fixes=2,
    ),
    "when_returns": Snippet(
        """\


def k(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        return x_ref[...]
       #^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["A function under `@pl.when` must return nothing"],
        fixes=1,
    ),
}


def test_branches_differ(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "branches-differ", SNIPPETS)
