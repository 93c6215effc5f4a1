"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "oob_slice": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[pl.ds(0, 128)] = x_ref[pl.ds(448, 128)]
                                #^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`pl.ds(448, 128)` covers 448 to 575"],
        fixes=1,
    ),
    "oob_start": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0:8] = x_ref[pl.ds(512, 8)]
                      #^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`pl.ds(512, 8)` starts at 512"],
        fixes=1,
    ),
    "oob_at": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0:128] = x_ref.at[pl.ds(448, 128)][...]
                           #^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`pl.ds(448, 128)` covers 448 to 575"],
        fixes=1,
    ),
    "oob_stride": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0:128] = x_ref[pl.ds(0, 128, stride=8)]
                        #^^^^^^^^^^^^^^^^^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`pl.ds(0, 128, stride=8)` covers 0 to 1016 in steps of 8"],
        since=(0, 12, 0, 1),
    ),
}


def test_index_out_of_bounds(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "index-out-of-bounds", SNIPPETS)
