"""Blocks that do not fit the tiles of a TPU."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-block-shape"
SNIPPETS = {
    "literals": Snippet(
        """
            def kernel(x_ref, b_ref, o_ref):
                o_ref[...] = x_ref[...] + b_ref[...]


            def add(x, b):
                rows, cols = x.shape
                return pl.pallas_call(
                    kernel,
                    out_shape=S(x.shape, x.dtype),
                    grid=(rows // 64, cols // 64),
                    in_specs=[
                        pl.BlockSpec((64, 64), lambda i, j: (i, j)),
                                    #^^^^^^^^
                        pl.BlockSpec((1, 64), lambda i, j: (0, j)),
                    ],
                    out_specs=pl.BlockSpec((64, 64), lambda i, j: (i, j)),
                )(x, b)


            if __name__ == "__main__":
                add(jnp.zeros((256, 512)), jnp.zeros((1, 512)))
        """,
        says=(
            "input 0 (`x`), f32[256,512]",
            "multiple of 128 nor the array's 512",
        ),
        fixes=1,
        related=("(256, 512)",),
    ),
    "argument_of_a_function": Snippet(
        """
            def add(x, block):
                def kernel(x_ref, o_ref):
                    o_ref[...] = x_ref[...] + 1

                spec = pl.BlockSpec(block_shape=(block, 128), index_map=lambda i: (i, 0))
                                               #^^^^^^^^^^^^
                return pl.pallas_call(
                    kernel, out_shape=OUT, grid=(pl.cdiv(x.shape[0], block),), in_specs=[spec], out_specs=spec
                )(x)


            if __name__ == "__main__":
                add(X, 4)
        """,
        says=(
            "(4, 128)",
            "multiple of 8",
        ),
        fixes=1,
    ),
    "helper_and_comprehension": Snippet(
        """
            def rows(n, block=4):
                return pl.BlockSpec((block, n), lambda i: (i, 0))
                                   #^^^^^^^^^^


            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = x_ref[...] + y_ref[...]


            if __name__ == "__main__":
                specs = [rows(128) for _ in range(2)]
                pl.pallas_call(kernel, out_shape=OUT, grid=(8,), in_specs=specs, out_specs=rows(128))(X, X)
        """,
        says=("(4, 128)",),
    ),
    "squeezed": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                spec = pl.BlockSpec((None, 128), lambda i: (i, 0))
                                   #^^^^^^^^^^^
                launch(kernel, OUT, X, grid=(64,), in_specs=[spec], out_specs=spec)
        """,
        says=("squeezed, which counts as 1",),
    ),
    "vector": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                spec = pl.BlockSpec((100,), lambda i: (i,))
                                   #^^^^^^
                launch(kernel, S((1000,), jnp.float32), jnp.zeros((1000,)), grid=(10,), in_specs=[spec], out_specs=spec)
        """,
        says=("multiple of 1024",),
    ),
    "scalar": Snippet(
        """
            def kernel(s_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...] * s_ref[()]


            def scale(s, x):
                return pl.pallas_call(kernel, out_shape=OUT)(s, x)
                                                            #^


            if __name__ == "__main__":
                scale(jnp.float32(2.0), X)
        """,
        says=("is a scalar (f32[])",),
    ),
    "blocks_in_hbm": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                blocks = pl.BlockSpec((8, 128), lambda i: (i, 0))
                spec = pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pl.ANY)
                                   #^^^^^^^^
                launch(kernel, OUT, X, grid=(8,), in_specs=[spec], out_specs=blocks)
        """,
        says=("stays in HBM",),
        fixes=1,
    ),
}


def test_tpu_block_shape(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
