"""Blocks and pipelines that cannot be pipelined."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-pipeline"
SNIPPETS = {
    "no_grid": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                spec = pl.BlockSpec((8, 128), lambda: (0, 0))
                                   #^^^^^^^^
                launch(kernel, S((8, 128), jnp.float32), X, in_specs=[spec])
        """,
        says=("no grid",),
    ),
    "three_buffers": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                three = pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(3))
                                                                              #^^^^^^^^^^^^^^
                launch(kernel, OUT, X, grid=(8,), in_specs=[three], out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)))
        """,
        says=("not 3",),
        fixes=1,
    ),
    "mixed_elements": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                mixed = pl.BlockSpec((pl.Element(8), 128), lambda i: (i * 8, 0))
                                    #^^^^^^^^^^^^^^^^^^^^
                launch(kernel, OUT, X, grid=(8,), in_specs=[mixed], out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)))
        """,
        says=("mixes them",),
    ),
    "missing_ref": Snippet(
        """
            def kernel(x_ref, o_ref):
                def body(a, b):
                    b[...] = a[...]

                spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
                pltpu.emit_pipeline(body, grid=(8,), in_specs=[spec], out_specs=[spec])(x_ref)


            if __name__ == "__main__":
                hbm = pl.BlockSpec(memory_space=pl.ANY)
                launch(kernel, OUT, X, in_specs=[hbm], out_specs=hbm)
        """,
        says=("1 input and 1 output refs, but gets 1",),
    ),
}


def test_tpu_pipeline(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
