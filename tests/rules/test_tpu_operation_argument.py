"""Arguments that TPU operations do not take."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-operation-argument"
SNIPPETS = {
    "negative_shift": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = pltpu.roll(x_ref[...], -1, 0)
                                                   #^^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("negative",),
        fixes=1,
    ),
    "axis": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = pltpu.roll(x_ref[...], 1, 2)
                                                      #^


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("does not have",),
    ),
    "stride": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = pltpu.roll(x_ref[...], 1, 1, stride=1)


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("`stride_axis`",),
    ),
}


def test_tpu_operation_argument(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
