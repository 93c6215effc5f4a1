"""Loads and stores that the memory of a ref does not allow."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-memory-space-access"
SNIPPETS = {
    "load_from_hbm": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + 1
                            #^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X, in_specs=[pl.BlockSpec(memory_space=pl.ANY)])
        """,
        says=("`x_ref`, which lies in HBM",),
        fixes=1,
        related=("placed in HBM",),
    ),
    "store_to_hbm": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + 1
               #^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X, out_specs=pl.BlockSpec(memory_space=pltpu.HBM))
        """,
        says=("stores to `o_ref`",),
        fixes=1,
    ),
    "vector_from_smem": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + 1
                            #^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X, in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)])
        """,
        says=("reads an array (f32[64,128]) from `x_ref`",),
        fixes=1,
    ),
    "scratch_in_smem": Snippet(
        """
            def kernel(x_ref, o_ref, s_ref):
                s_ref[...] = x_ref[...]
                o_ref[...] = s_ref[...]


            if __name__ == "__main__":
                launch(kernel, OUT, X, scratch_shapes=[pltpu.SMEM((64, 128), jnp.float32)])
        """,
        says=("`s_ref`",),
        fixes=1,
    ),
    "scalar_to_vmem": Snippet(
        """
            def total(x):
                def kernel(x_ref, o_ref):
                    o_ref[0, 0] = jnp.sum(x_ref[...])
                   #^^^^^^^^^^^

                return pl.pallas_call(kernel, out_shape=S((1, 1), jnp.float32))(x)


            if __name__ == "__main__":
                total(X)
        """,
        says=("takes a scalar (f32[])",),
        fixes=2,
    ),
    "mask_of_small_type": Snippet(
        """
            def kernel(x_ref, o_ref):
                pltpu.store(o_ref, x_ref[...], mask=x_ref[...] > 0)
                                                   #^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 128), jnp.bfloat16), X.astype(jnp.bfloat16))
        """,
        says=("32-bit types only",),
    ),
}


def test_tpu_memory_space_access(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
