"""Types that Triton does not have for an operation."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TRITON, Snippet, check

RULE = "triton-unsupported-type"
SNIPPETS = {
    "index": Snippet(
        """
            jax.config.update("jax_enable_x64", True)


            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.argmax(x_ref[...], axis=1)
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                pl.pallas_call(kernel, out_shape=S((64,), jnp.int64), compiler_params=plt.CompilerParams())(X)
        """,
        says=("i64[64]",),
        fixes=1,
    ),
    "complex": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.abs(x_ref[...])


            if __name__ == "__main__":
                launch(kernel, OUT, X.astype(jnp.complex64))
        """,
        says=("complex",),
    ),
    "atomic": Snippet(
        """
            def kernel(x_ref, o_ref):
                plt.atomic_add(o_ref, (), x_ref[...])
                              #^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 128), jnp.int8), X.astype(jnp.int8))
        """,
        says=(
            "`atomic_add`",
            "int8",
        ),
    ),
    "tanh": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = plt.approx_tanh(x_ref[...])
                                            #^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, I)
        """,
        says=("int32",),
    ),
}


def test_triton_unsupported_type(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)
