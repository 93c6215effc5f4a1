"""The rule on small kernels that differ in one place: exact ranges, words, and what the fixes do."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

SNIPPETS = {
    "idx_many": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0, 0] = x_ref[0, 0, 0]
                       #^^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` has 2 dimensions, (512, 256)"],
    ),
    "idx_ellipses": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[..., ...]
                           #^^^


if __name__ == "__main__":
    call(k)
""",
        ["`...` may stand once in an index"],
        fixes=1,
    ),
    "idx_list": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0:2] = x_ref[[0, 1]]
                      #^^^^^^


if __name__ == "__main__":
    call(k)
""",
        ["A ref is not indexed with a list. Use a slice, `pl.ds(start, size)`, or an integer array."],
    ),
    "idx_str": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[0:2] = x_ref["a"]
                      #^^^


if __name__ == "__main__":
    call(k)
""",
        ["`x_ref` is indexed with a string"],
    ),
    "idx_step": Snippet(
        """\


def k(x_ref, o_ref):
    o_ref[...] = x_ref[::-1]
                      #^^^^


if __name__ == "__main__":
    call(k)
""",
        ["`::-1` has a step that a ref does not take"],
    ),
}


def test_ref_index_invalid(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "ref-index-invalid", SNIPPETS)
