"""Types that a TPU kernel does not have for an operation."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-unsupported-type"
SNIPPETS = {
    "cast": Snippet(
        """
            jax.config.update("jax_enable_x64", True)


            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...].astype(jnp.int64)
                                              #^^^^^^^^^


            def run(x):
                return pl.pallas_call(kernel, out_shape=S(x.shape, jnp.int64))(x)


            if __name__ == "__main__":
                run(I)
        """,
        says=(
            "i64[64,128]",
            "no 64-bit types",
        ),
        fixes=1,
    ),
    "arange": Snippet(
        """
            jax.config.update("jax_enable_x64", True)


            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + jnp.arange(128)


            if __name__ == "__main__":
                launch(kernel, S((64, 128), jnp.int32), I)
        """,
        says=("jax_enable_x64",),
        fixes=1,
        rule="tpu-unsupported-type",
    ),
    "unsigned_sum": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.sum(x_ref[...], axis=1, keepdims=True)


            if __name__ == "__main__":
                launch(kernel, S((64, 1), jnp.uint32), X.astype(jnp.uint32))
        """,
        says=("reduces u32[64,128]",),
        fixes=1,
    ),
    "small_max_method": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...].max(axis=1, keepdims=True)


            if __name__ == "__main__":
                launch(kernel, S((64, 1), jnp.int8), X.astype(jnp.int8))
        """,
        says=("reduces i8[64,128]",),
        fixes=1,
    ),
    "argmax_of_integers": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.argmax(x_ref[...], axis=1, keepdims=True)


            if __name__ == "__main__":
                launch(kernel, S((64, 1), jnp.int32), I)
        """,
        says=("i32[64,128]",),
        fixes=1,
    ),
}


def test_tpu_unsupported_type(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
