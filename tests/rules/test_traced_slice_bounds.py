"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "slice_dyn": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    o_ref[i * 64 : (i + 1) * 64] = x_ref[i * 64 : (i + 1) * 64]
                                        #^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["The bounds of the slice `i * 64 : (i + 1) * 64` are computed in the kernel, so its size"],
        fixes=1,
    ),
    "val_slice_dyn": Snippet(
        """\


def k(x_ref, o_ref):
    i = pl.program_id(0)
    x = x_ref[...]
    o_ref[0:64] = x[i * 64 : (i + 1) * 64]
                   #^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k, grid=(2,))
""",
        ["The bounds of the slice `i * 64 : (i + 1) * 64` are computed in the kernel, so its size"],
        fixes=1,
    ),
}


def test_traced_slice_bounds(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "traced-slice-bounds", SNIPPETS)
