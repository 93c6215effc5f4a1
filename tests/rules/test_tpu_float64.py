"""Kernels with float64 operands, which jax lowers all the same."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-float64"
SNIPPETS = {
    "input": Snippet(
        """
            jax.config.update("jax_enable_x64", True)


            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2


            def double(x):
                return pl.pallas_call(kernel, out_shape=S(x.shape, x.dtype))(x)
                      #^^^^^^^^^^^^^^


            if __name__ == "__main__":
                double(X.astype(jnp.float64))
        """,
        says=("f64[64,128]",),
    ),
    "float32_is_fine": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        rule="",
    ),
}


def test_tpu_float64(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
