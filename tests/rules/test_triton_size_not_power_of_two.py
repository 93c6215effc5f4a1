"""Blocks whose size is no power of two."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TRITON, Snippet, check

RULE = "triton-size-not-power-of-two"
SNIPPETS = {
    "tiles": Snippet(
        """
            def add(x, block=96):
                def kernel(x_ref, o_ref):
                    o_ref[...] = x_ref[...] + 1
                                #^^^^^^^^^^

                return pl.pallas_call(
                    kernel,
                    out_shape=S(x.shape, x.dtype),
                    grid=(pl.cdiv(x.shape[0], block),),
                    in_specs=[pl.BlockSpec((block,), lambda i: (i,))],
                    out_specs=pl.BlockSpec((block,), lambda i: (i,)),
                    compiler_params=plt.CompilerParams(),
                )(x)


            if __name__ == "__main__":
                add(jnp.zeros((3072,)))
        """,
        says=(
            "(96,)",
            "make it (128,)",
        ),
        fixes=2,
        related=("The block of `x_ref`",),
    ),
    "whole": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2
                            #^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((8, 96), jnp.float32), jnp.zeros((8, 96)))
        """,
        says=(
            "(8, 96), 768 elements",
            "(8, 128)",
        ),
    ),
    "arange": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + jnp.arange(48).sum()


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("(48,)",),
    ),
    "part": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + x_ref[:, pl.ds(0, 48)].sum()
                                         #^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("(64, 48)",),
    ),
}


def test_triton_size_not_power_of_two(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)
