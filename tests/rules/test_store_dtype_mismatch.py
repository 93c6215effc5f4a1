"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "store_bf16": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
                #^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, out=SDS(X.shape, jnp.bfloat16))
""",
        ["`x_ref[...] * 2` is float32"],
        fixes=1,
    ),
    "store_aug_dtype": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)
    o_ref[...] += x_ref[...] * 2
                 #^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, out=SDS(X.shape, jnp.bfloat16))
""",
        ["The result is float32"],
        fixes=1,
    ),
    "store_dtype_helper": Snippet(
        """\


def write(ref, value):
    ref[...] = value
              #^^^^^


def k(x_ref, o_ref):
    write(o_ref, x_ref[...])


if __name__ == "__main__":
    pl.pallas_call(k, SDS(X.shape, jnp.bfloat16))(X)
""",
        ["`value` is float32"],
        fixes=1,
    ),
}


def test_store_dtype_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "store-dtype-mismatch", SNIPPETS)
