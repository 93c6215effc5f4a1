"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "swapped": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec(lambda i, j: (i, j), (128, 128))],
                              #^^^^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["The first argument of a BlockSpec is the block's shape"],
        fixes=1,
    ),
    "swapped_gpu": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[plgpu.BlockSpec(lambda i, j: (i, j), (128, 128))],
                                 #^^^^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["The first argument of a BlockSpec is the block's shape"],
        fixes=1,
    ),
    "map_only": Snippet(
        """\


def f(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=SDS(x.shape, x.dtype),
        grid=(4, 2),
        in_specs=[pl.BlockSpec(lambda i, j: (i, j))],
                              #^^^^^^^^^^^^^^^^^^^
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


if __name__ == "__main__":
    f(X)
""",
        ["The first argument of a BlockSpec is the block's shape"],
    ),
}


def test_block_spec_arguments_swapped(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "block-spec-arguments-swapped", SNIPPETS)
