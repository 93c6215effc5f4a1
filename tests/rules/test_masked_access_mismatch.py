"""Values and masks that do not fit the ref that they are stored to."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TRITON, Snippet, check

RULE = "masked-access-mismatch"
SNIPPETS = {
    "type": Snippet(
        """
            def kernel(x_ref, o_ref):
                plt.store(o_ref, x_ref[...].astype(jnp.bfloat16))
                                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=(
            "bfloat16",
            "`o_ref` holds float32",
        ),
        fixes=1,
    ),
    "shape": Snippet(
        """
            def kernel(x_ref, o_ref):
                plt.store(o_ref.at[0], x_ref[...])
                                      #^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=(
            "(64, 128)",
            "`o_ref.at[0]` takes the shape (128,)",
        ),
    ),
}


def test_masked_access_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)
