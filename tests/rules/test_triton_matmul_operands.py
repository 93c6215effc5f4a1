"""Matrix products that Triton cannot compute."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TRITON, Snippet, check

RULE = "triton-matmul-operands"
SNIPPETS = {
    "vector": Snippet(
        """
            def kernel(x_ref, v_ref, o_ref):
                o_ref[...] = x_ref[...] @ v_ref[0]
                            #^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64,), jnp.float32), X, X)
        """,
        says=(
            "f32[64,128] and f32[128]",
            "jnp.sum",
        ),
        fixes=1,
    ),
    "mixed": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...].T, preferred_element_type=jnp.float32)


            if __name__ == "__main__":
                launch(kernel, S((64, 64), jnp.float32), X, X.astype(jnp.bfloat16))
        """,
        says=(
            "f32[64,128] and bf16",
            "same type",
        ),
        fixes=2,
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
    "batch": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.einsum("bij,bjk->bik", x_ref[...], x_ref[...])


            if __name__ == "__main__":
                launch(kernel, S((2, 32, 32), jnp.float32), jnp.zeros((2, 32, 32)))
        """,
        says=("batch of matrices",),
    ),
    "algorithm": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=lax.DotAlgorithmPreset.F64_F64_F64)
                                                                      #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 64), jnp.float32), X, jnp.zeros((128, 64)))
        """,
        says=("F64_F64_F64",),
        fixes=1,
    ),
}


def test_triton_matmul_operands(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)
