"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "grid_float": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(x.shape[0] / 128, 2),
             #^^^^^^^^^^^^^^^^
        in_specs=[s],
        out_specs=s,
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`x.shape[0] / 128` is the float 4.0"],
        fixes=2,
    ),
    "grid_float_scalar": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 256), lambda i: (i, 0))
    return pl.pallas_call(
        copy_kernel, out_shape=SDS(x.shape, x.dtype), grid=x.shape[0] / 128, in_specs=[s], out_specs=s
                                                          #^^^^^^^^^^^^^^^^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`x.shape[0] / 128` is the float 4.0"],
        fixes=2,
    ),
    "grid_npfloat": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 256), lambda i: (i, 0))
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(np.ceil(x.shape[0] / 128),),
             #^^^^^^^^^^^^^^^^^^^^^^^^^
        in_specs=[s],
        out_specs=s,
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`np.ceil(x.shape[0] / 128)` is the float 4.0"],
        fixes=1,
    ),
    "grid_str": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 256), lambda i: (i, 0))
    return pl.pallas_call(
        copy_kernel, out_shape=SDS(x.shape, x.dtype), grid=("i",), in_specs=[s], out_specs=s
                                                           #^^^
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`\"i\"` is the string 'i'"],
    ),
    "grid_name": Snippet(
        """\


def f(x):
    steps = x.shape[0] / 128
           #^^^^^^^^^^^^^^^^
    block = pl.BlockSpec((128, 256), lambda i: (i, 0))
    return pl.pallas_call(
        copy_kernel, SDS(x.shape, x.dtype), grid=(steps,), in_specs=[block], out_specs=block
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`x.shape[0] / 128` is the float 4.0"],
        fixes=2,
    ),
    "grid_in_spec": Snippet(
        """\


def f(x):
    block = pl.BlockSpec((128, 256), lambda i: (i, 0))
    spec = pl.GridSpec(grid=(512 / 128,), in_specs=[block], out_specs=block)
                            #^^^^^^^^^
    return pl.pallas_call(copy_kernel, SDS(x.shape, x.dtype), grid_spec=spec)(x)


if __name__ == "__main__":
    f(X)
""",
        ["`512 / 128` is the float 4.0"],
        fixes=2,
    ),
}


def test_grid_not_integers(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "grid-not-integers", SNIPPETS)
