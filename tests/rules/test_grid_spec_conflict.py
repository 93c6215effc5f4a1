"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "grid_and_spec": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 256), lambda i: (i, 0))
    gs = pl.GridSpec(grid=(4,), in_specs=[s], out_specs=s)
    return pl.pallas_call(copy_kernel, out_shape=SDS(x.shape, x.dtype), grid=(4,), grid_spec=gs)(x)
                                                                       #^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`grid` is given beside `grid_spec`, which holds it already. Give it in one place only."],
        fixes=1,
    ),
    "spec_and_in": Snippet(
        """\


def f(x):
    s = pl.BlockSpec((128, 256), lambda i: (i, 0))
    gs = pl.GridSpec(grid=(4,), in_specs=[s], out_specs=s)
    return pl.pallas_call(copy_kernel, out_shape=SDS(x.shape, x.dtype), in_specs=[s], grid_spec=gs)(x)
                                                                       #^^^^^^^^^^^^


if __name__ == "__main__":
    f(X)
""",
        ["`in_specs` is given beside `grid_spec`, which holds it already. Give it in one place only."],
        fixes=1,
    ),
}


def test_grid_spec_conflict(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "grid-spec-conflict", SNIPPETS)
