"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "ref_cond": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = lax.cond(pl.program_id(0) == 0, lambda r: r[...], lambda r: r[...] + 1, x_ref)
                                       #^


if __name__ == "__main__":
    call(k)
""",
        ["`pl.program_id(0)` asks for an axis of the grid"],
    ),
    "pid_axis": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id(2)
                                           #^


if __name__ == "__main__":
    call(k, grid=(2, 2))
""",
        ["`pl.program_id(2)` asks for an axis that the grid (2, 2) does not have"],
        fixes=1,
    ),
    "pid_nogrid": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id(0)
                                           #^


if __name__ == "__main__":
    call(k)
""",
        ["`pl.program_id(0)` asks for an axis of the grid"],
    ),
    "pid_str": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id("i")
                                           #^^^


if __name__ == "__main__":
    call(k, grid=(2, 2))
""",
        ['`pl.program_id("i")` asks for an axis by something else than a number'],
    ),
}


def test_grid_axis_out_of_range(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "grid-axis-out-of-range", SNIPPETS)
