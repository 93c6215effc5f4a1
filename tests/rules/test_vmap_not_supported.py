"""``jax.vmap`` over refs inside of a kernel, and over launches without a batched form."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

RULE = "vmap-not-supported"
SNIPPETS = {
    "slice_at_each_start": Snippet(
        """
        def kernel(x_ref, i_ref, o_ref):
            o_ref[...] = jax.vmap(lambda i: x_ref[i, pl.ds(i, 2)])(i_ref[...])
                                           #^^^^^^^^^^^^^^^^^^^^^


        if __name__ == "__main__":
            pl.pallas_call(kernel, out_shape=SDS((4, 2, 128), jnp.float32))(jnp.ones((8, 8, 128)), jnp.arange(4))
        """,
        says=("starts elsewhere for each element", "pl.loop"),
        related=("It is mapped here",),
    ),
    "store": Snippet(
        """
        def kernel(x_ref, o_ref):
            def put(i):
                o_ref[0] = x_ref[i]
               #^^^^^^^^

            jax.vmap(put)(jnp.arange(4))


        if __name__ == "__main__":
            call(kernel, jnp.ones((4,)))
        """,
        says=("`o_ref[0]` stores a value", "not mapped"),
        related=("It is mapped here",),
    ),
    "indexed_twice": Snippet(
        """
        def kernel(x_ref, i_ref, o_ref):
            o_ref[...] = jax.vmap(lambda i: x_ref.at[i].at[pl.ds(0, 4)][...])(i_ref[...])


        if __name__ == "__main__":
            pl.pallas_call(kernel, out_shape=SDS((4, 4, 128), jnp.float32))(jnp.ones((8, 8, 128)), jnp.arange(4))
        """,
        says=("more than once",),
    ),
    "a_whole_index_can_be_mapped": Snippet(
        """
        def kernel(x_ref, i_ref, o_ref):
            o_ref[...] = jax.vmap(lambda i: x_ref[i])(i_ref[...])


        if __name__ == "__main__":
            params = {"out_shape": SDS((4, 128), jnp.float32), "compiler_params": pltriton.CompilerParams()}
            pl.pallas_call(kernel, **params)(jnp.ones((8, 128)), jnp.arange(4))
        """,
        rule="",
    ),
    "launches_can_be_mapped": Snippet(
        """
        if __name__ == "__main__":
            jax.vmap(lambda x: call(copy_kernel, x))(jnp.ones((4, 8, 128)))
        """,
        rule="",
    ),
}


def test_vmap_not_supported(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, SNIPPETS)
