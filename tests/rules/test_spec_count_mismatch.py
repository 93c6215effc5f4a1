"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "block_spec_tuple": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[((128, 128), lambda i, j: (i, j))],
                 #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`((128, 128), lambda i, j"],
        fixes=1,
    ),
    "in_specs_bare": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`in_specs` is a BlockSpec"],
        fixes=1,
    ),
    "in_specs_many": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        copy_kernel, out_shape=SDS(x.shape, x.dtype), grid=(4, 2), in_specs=[s, s], out_specs=s
                                                                           #^^^^^^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`in_specs` has 2 specs"],
        fixes=1,
    ),
    "out_specs_bare": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        copy_kernel, out_shape=[SDS(x.shape, x.dtype)], grid=(4, 2), in_specs=[s], out_specs=s
                                                                                            #^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`out_specs` is a single spec"],
        fixes=1,
    ),
    "out_specs_few": Snippet(
        """\


def k(x, o, p):
    o[...] = x[...]


def f(x):
    s = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        k,
        out_shape=(SDS(x.shape, x.dtype), SDS(x.shape, x.dtype)),
        grid=(4, 2),
        in_specs=[s],
        out_specs=[s],
                 #^^^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`out_specs` has 1 spec"],
        fixes=2,
    ),
    "count_star": Snippet(
        """\


COMMON = dict(grid=(4,))


def f(x, y):
    block = pl.BlockSpec((128, 256), lambda i: (i, 0))
    return pl.pallas_call(
        add_kernel, SDS(x.shape, x.dtype), in_specs=[block] * 3, out_specs=block, **COMMON
                                                   #^^^^^^^^^^^
    )(x, y)


if __name__ == "__main__":
    f(X, X)
""",
        ["`in_specs` has 3 specs"],
        fixes=1,
    ),
    "count_var": Snippet(
        """\


def f(x, y):
    block = pl.BlockSpec((128, 256), lambda i: (i, 0))
    in_specs = [block]
    call = functools.partial(
        pl.pallas_call, out_shape=SDS(x.shape, x.dtype), grid=(4,), in_specs=in_specs, out_specs=block
                                                                            #^^^^^^^^
    )
    return call(add_kernel)(x, y)


if __name__ == "__main__":
    f(X, X)
""",
        ["`in_specs` has 1 spec"],
        fixes=1,
    ),
    "argument_none": Snippet(
        """\


def masked(x_ref, mask_ref, o_ref):
    o_ref[...] = x_ref[...] if mask_ref is None else jnp.where(mask_ref[...], x_ref[...], 0)


def f(x, mask=None):
    rows = pl.BlockSpec((128, 256), lambda i: (i, 0))
    return pl.pallas_call(
        masked, grid=(4,), in_specs=[rows, rows], out_specs=rows, out_shape=SDS(x.shape, x.dtype)
                                          #^^^^
    )(x, mask)


if __name__ == "__main__":
    f(X)
""",
        ["Argument 1 of the call, `mask`, is `None` here", "its spec must be `None`, too"],
        fixes=1,
    ),
}


def test_spec_count_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "spec-count-mismatch", SNIPPETS)
