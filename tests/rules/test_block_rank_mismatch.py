"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "rank_out": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[s],
        out_specs=pl.BlockSpec((128,), lambda i, j: (i,)),
                              #^^^^^^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["The block (128,) has 1 dimension"],
    ),
    "rank_shared": Snippet(
        """\


def f(x, b):
    row = pl.BlockSpec((256,), lambda i: (0,))
                      #^^^^^^
    return pl.pallas_call(
        add_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4,),
        in_specs=[row, row],
        out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
    )(b, x)


if __name__ == "__main__":
    f(X, jnp.ones(256))
""",
        ["The block (256,) has 1 dimension"],
    ),
    "rank_too_many": Snippet(
        """\


def f(x, b):
    block = pl.BlockSpec((1, 128, 256), lambda i: (0, i, 0))
                        #^^^^^^^^^^^^^
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4,),
        in_specs=[block],
        out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
    )(x)


if __name__ == "__main__":
    f(X, jnp.ones(256))
""",
        ["The block (1, 128, 256) has 3 dimensions"],
        fixes=1,
    ),
}


def test_block_rank_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "block-rank-mismatch", SNIPPETS)
