"""Matrix products that a matrix unit of a TPU cannot compute."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-matmul-operands"
SNIPPETS = {
    "narrow_result": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...])
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 64), jnp.bfloat16), X.astype(jnp.bfloat16), jnp.zeros((128, 64), jnp.bfloat16))
        """,
        says=(
            "bf16[64,64]",
            "sums in 32 bits",
        ),
        fixes=1,
    ),
    "operator": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = x_ref[...] @ y_ref[...]


            if __name__ == "__main__":
                launch(kernel, S((64, 64), jnp.bfloat16), X.astype(jnp.bfloat16), jnp.zeros((128, 64), jnp.bfloat16))
        """,
        fixes=1,
    ),
    "unsigned": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.int32)


            if __name__ == "__main__":
                launch(kernel, S((64, 64), jnp.int32), X.astype(jnp.uint8), jnp.zeros((128, 64), jnp.uint8))
        """,
        says=("unsigned",),
        fixes=1,
    ),
    "two_precisions": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=("highest", "default"))
                                                                      #^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 64), jnp.float32), X, jnp.zeros((128, 64)))
        """,
        says=("two different precisions",),
        fixes=1,
    ),
}


def test_tpu_matmul_operands(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
