"""Operations that a TPU kernel does not have."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-unsupported-operation"
SNIPPETS = {
    "row_of_a_value": Snippet(
        """
            def kernel(i_ref, x_ref, o_ref):
                table = x_ref[...]
                o_ref[0, :] = table[i_ref[0]]
                             #^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                specs = [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()]
                launch(kernel, OUT, jnp.zeros((8,), jnp.int32), X, in_specs=specs)
        """,
        says=(
            "`dynamic_slice`",
            "`x_ref[i_ref[0]]`",
        ),
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
        says=("take_along_axis",),
    ),
    "scatter": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...].at[0].add(1.0)


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("`scatter-add`",),
        fixes=1,
    ),
    "update_slice": Snippet(
        """
            def kernel(x_ref, y_ref, o_ref):
                y = y_ref[...]
                o_ref[...] = lax.dynamic_update_slice(x_ref[...], y, (8, 0))


            if __name__ == "__main__":
                launch(kernel, OUT, X, X[:8])
        """,
        says=("`dynamic_update_slice`",),
        fixes=1,
    ),
    "sort": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.sort(x_ref[...], axis=1)
                            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("`sort`",),
    ),
    "cumsum": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("triangular",),
    ),
    "split_key": Snippet(
        """
            def kernel(key_ref, o_ref):
                a, b = jax.random.split(key_ref[...])
                o_ref[...] = jax.random.uniform(a, (64, 128))


            if __name__ == "__main__":
                keys = [pl.BlockSpec(memory_space=pltpu.SMEM)]
                launch(kernel, OUT, pltpu.to_pallas_key(jax.random.key(0)), in_specs=keys)
        """,
        says=("fold_in",),
    ),
    "bitcast": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = lax.bitcast_convert_type(x_ref[...], jnp.int16)
                                                                 #^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 128, 2), jnp.int16), X)
        """,
        says=("pltpu.bitcast",),
    ),
    "top_k": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = lax.top_k(x_ref[...], 8)[0]


            if __name__ == "__main__":
                launch(kernel, S((64, 8), jnp.float32), X)
        """,
        says=("stable",),
        fixes=1,
        since=(0, 12),
    ),
}


def test_tpu_unsupported_operation(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
