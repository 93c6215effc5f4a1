"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "result_float_const": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (i, 0.0))],
                                                           #^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`0.0` is a float32"],
        fixes=1,
    ),
    "result_slice": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (i, pl.ds(0, 128)))],
                                                           #^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`pl.ds(0, 128)` is a Slice"],
    ),
    "result_array": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (i, jnp.zeros(2, int)))],
                                                           #^^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`jnp.zeros(2, int)` is an array, int32[2]"],
    ),
    "float_def": Snippet(
        """\


def rows(i):
    block = i / 2
    return block, 0
          #^^^^^


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((128, 256), rows)],
        out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["`block` is a float32"],
        fixes=2,
    ),
}


def test_index_map_result_type(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "index-map-result-type", SNIPPETS)
