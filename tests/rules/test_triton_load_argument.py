"""Loads and stores with arguments that do not go together."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TRITON, Snippet, check

RULE = "triton-load-argument"
SNIPPETS = {
    "other_without_mask": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = plt.load(x_ref, other=0.0)
                                                  #^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("`other`",),
        fixes=1,
    ),
    "mask_of_columns": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = plt.load(x_ref, mask=jnp.arange(128) < 100, other=0.0)
                                                 #^^^^^^^^^^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=(
            "[128]",
            "[64, 128]",
        ),
        fixes=1,
    ),
    "cache_modifier": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = plt.load(x_ref, cache_modifier=".zz")
                                                           #^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("`.ca`",),
        fixes=1,
    ),
    "eviction": Snippet(
        """
            def kernel(x_ref, o_ref):
                plt.store(o_ref, x_ref[...], eviction_policy="soon")
                                                            #^^^^^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("`evict_first`",),
        fixes=1,
    ),
    "indexed_twice": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref.at[pl.ds(0, 32)].at[pl.ds(0, 16)][...]


            if __name__ == "__main__":
                launch(kernel, S((16, 128), jnp.float32), X)
        """,
        says=("`x_ref` more than once",),
    ),
    "atomic_of_a_block": Snippet(
        """
            def kernel(x_ref, o_ref):
                plt.atomic_cas(o_ref, x_ref[...], x_ref[...])


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("one element",),
    ),
    "multiple_of": Snippet(
        """
            def kernel(x_ref, o_ref):
                i = pl.multiple_of(pl.program_id(0) * 8, (8, 8))
                                                        #^^^^^^
                o_ref[...] = x_ref[pl.ds(i, 8)]


            if __name__ == "__main__":
                launch(kernel, S((8, 128), jnp.float32), X, grid=(2,))
        """,
        says=("one for each axis",),
    ),
}


def test_triton_load_argument(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)
