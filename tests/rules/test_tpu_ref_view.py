"""Views of refs that a TPU cannot address."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-ref-view"
SNIPPETS = {
    "array_of_indices": Snippet(
        """
            def kernel(i_ref, x_ref, o_ref):
                o_ref[...] = x_ref[i_ref[...]]
                            #^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((8, 128), jnp.float32), jnp.zeros((8,), jnp.int32), X)
        """,
        says=("indexes `x_ref` with an array",),
    ),
    "stride_of_a_value": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...][::2]
                            #^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((32, 128), jnp.float32), X)
        """,
        says=("every other element",),
        fixes=1,
    ),
    "part_of_a_strided_view": Snippet(
        """
            def kernel(x_ref, o_ref):
                rows = x_ref.at[pl.ds(0, 32, 2)]
                o_ref[...] = rows[pl.ds(0, 8)]


            if __name__ == "__main__":
                launch(kernel, S((8, 128), jnp.float32), X)
        """,
        says=("strided view",),
    ),
}


def test_tpu_ref_view(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
