"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "result_count": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: i)],
                                                       #^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map returns 1 value"],
        fixes=2,
    ),
    "result_none": Snippet(
        """\


def m(i, j):
   #^
    i, j


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
        ["This index map returns nothing"],
    ),
    "result_nested": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: ((i, j),))],
                                                       #^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["This index map returns 1 value"],
        fixes=1,
    ),
    "result_def": Snippet(
        """\


def rows(i):
    return i
          #^


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
        ["This index map returns 1 value"],
        fixes=1,
    ),
    "no_return": Snippet(
        """\


def rows(i):
   #^^^^
    (i, 0)


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
        ["This index map returns nothing"],
        fixes=1,
    ),
}


def test_index_map_result_count(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "index-map-result-count", SNIPPETS)
