"""Operations that Triton does not have, with reads and stores of parts as fixes."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TRITON, Snippet, check

RULE = "triton-unsupported-operation"
SNIPPETS = {
    "slice": Snippet(
        """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = x[:32, :]
                            #^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((32, 128), jnp.float32), X)
        """,
        says=(
            "`slice`",
            "`x_ref[:32, :]`",
        ),
        fixes=1,
    ),
    "two_slices_of_a_cast": Snippet(
        """
            def kernel(x_ref, o_ref):
                x = x_ref[...].astype(jnp.float32)
                half = x.shape[-1] // 2
                x1, x2 = x[:, :half], x[:, half:]
                        #^^^^^^^^^^^
                o_ref[:, :half] = -x2
                o_ref[:, half:] = x1


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("a part of a value that is already loaded",),
        fixes=1,
    ),
    "traced_index": Snippet(
        """
            def kernel(x_ref, i_ref, o_ref):
                rows = x_ref[...]
                o_ref[...] = rows[i_ref[0, 0]]
                            #^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((128,), jnp.float32), X, I)
        """,
        says=(
            "`dynamic_slice`",
            "`x_ref[i_ref[0, 0]]`",
        ),
        fixes=1,
    ),
    "dynamic_slice_in_dim": Snippet(
        """
            def kernel(x_ref, o_ref):
                i = pl.program_id(0)
                o_ref[...] = lax.dynamic_slice_in_dim(x_ref[...], i * 16, 16, axis=0)
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((16, 128), jnp.float32), X, grid=(4,))
        """,
        says=("pl.ds(i * 16, 16)",),
        fixes=1,
    ),
    "gather": Snippet(
        """
            def kernel(x_ref, i_ref, o_ref):
                o_ref[...] = x_ref[...][i_ref[0, :64]]
                            #^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X, I)
        """,
        says=("`gather`",),
        fixes=1,
    ),
    "concatenate": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                x, y = x_ref[...], y_ref[...]
                both = jnp.concatenate([x, y], axis=1)
                      #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                o_ref[...] = both


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), X, X)
        """,
        says=(
            "f32[64,128]",
            "Store each part",
        ),
        fixes=1,
    ),
    "stack": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.stack([x_ref[...], x_ref[...]])


            if __name__ == "__main__":
                launch(kernel, S((2, 64, 128), jnp.float32), X)
        """,
        fixes=1,
    ),
    "sort": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.sort(x_ref[...], axis=-1)
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=(
            "`sort`",
            "outside of the kernel",
        ),
    ),
    "any": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.any(x_ref[...] > 0, axis=1)


            if __name__ == "__main__":
                launch(kernel, S((64,), jnp.bool_), X)
        """,
        says=("`reduce_or`",),
        fixes=1,
    ),
    "reversed_sum": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = lax.cumsum(x_ref[...], axis=1, reverse=True)
                                                                   #^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("forward",),
        fixes=1,
    ),
    "library_function": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.linalg.cholesky(x_ref[:, :64])


            if __name__ == "__main__":
                launch(kernel, S((64, 64), jnp.float32), X)
        """,
        says=(
            "`cholesky`",
            "Compute it outside",
        ),
    ),
    "roll_is_told_as_roll": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.roll(x_ref[...], 1, axis=0)


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("shifted places",),
    ),
    "bitcast": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = lax.bitcast_convert_type(x_ref[...], jnp.int16)
                                                                 #^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 128, 2), jnp.int16), X)
        """,
        says=("width differs",),
    ),
}


def test_triton_unsupported_operation(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)
