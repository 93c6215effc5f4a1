"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "arity_few": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i: (i, 0))],
                                          #^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map takes 1 argument"],
        fixes=2,
    ),
    "arity_many": Snippet(
        """\


def m(i, j, k):
   #^
    return i, j


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), m)],
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map takes 3 arguments"],
        fixes=1,
    ),
    "arity_comprehension": Snippet(
        """\


def f(x, y):
    specs = [pl.BlockSpec((128, 256), lambda i, j: (i, 0)) for _ in range(2)]
                                     #^^^^^^^^^^^^^^^^^^^
    return pl.pallas_call(
        add_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4,),
        in_specs=specs,
        out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
    )(x, y)


if __name__ == "__main__":
    f(X, X)
""",
        ["This index map takes 2 arguments"],
        fixes=1,
    ),
    "arity_helper": Snippet(
        """\


def rows(n):
    return pl.BlockSpec((128, n), lambda i, j: (i, 0))
                                 #^^^^^^^^^^^^^^^^^^^


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4,),
        in_specs=[rows(256)],
        out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map takes 2 arguments"],
        fixes=1,
    ),
    "arity_keyword": Snippet(
        """\


def f(x):
    spec = pl.BlockSpec(index_map=lambda: (0, 0), block_shape=(128, 256))
                                 #^^^^^^^^^^^^^^
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4,),
        in_specs=[spec],
        out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map takes 0 arguments"],
        fixes=2,
    ),
    "arity_partial": Snippet(
        """\


def rows(offset, i, j):
    return i + offset, 0


def f(x):
    spec = pl.BlockSpec((128, 256), functools.partial(rows, 0))
                                   #^^^^^^^^^^^^^^^^^^^^^^^^^^
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4,),
        in_specs=[spec],
        out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map takes other arguments"],
    ),
    "arity_gridspec": Snippet(
        """\


def f(x):
    spec = pl.GridSpec(
        grid=(4, 1),
        in_specs=[pl.BlockSpec((128, 256), lambda i: (i, 0))],
                                          #^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 256), lambda i, j: (i, 0)),
    )
    return pl.pallas_call(copy_kernel, out_shape=SDS(x.shape, x.dtype), grid_spec=spec)(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map takes 1 argument"],
        fixes=1,
    ),
    "arity_prefetch": Snippet(
        """\


def k(s_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


def f(s, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((128, 256), lambda i: (i, 0))],
                                          #^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 256), lambda i, s: (i, 0)),
    )
    return pl.pallas_call(k, out_shape=SDS(x.shape, x.dtype), grid_spec=spec)(s, x)


if __name__ == "__main__":
    f(jnp.zeros(4, jnp.int32), X)
""",
        ["This index map takes 1 argument"],
        fixes=1,
    ),
}


def test_index_map_arity(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "index-map-arity", SNIPPETS)
