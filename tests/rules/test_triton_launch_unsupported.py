"""Launches that ask Triton for features of TPU kernels."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TRITON, Snippet, check

RULE = "triton-launch-unsupported"
SNIPPETS = {
    "scalar_prefetch": Snippet(
        """
            from jax.experimental.pallas import tpu as pltpu


            def kernel(i_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...]


            def rows(x, i):
                spec = pltpu.PrefetchScalarGridSpec(
                    num_scalar_prefetch=1,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((16, 128), lambda g, i: (i[g], 0))],
                    out_specs=pl.BlockSpec((16, 128), lambda g, i: (g, 0)),
                )
                return pl.pallas_call(kernel, grid_spec=spec, out_shape=OUT, compiler_params=plt.CompilerParams())(i, x)
                      #^^^^^^^^^^^^^^


            if __name__ == "__main__":
                rows(X, jnp.zeros((4,), jnp.int32))
        """,
        says=("prefetches scalars",),
        related=("Scalar prefetch is asked for here",),
    ),
    "scratch": Snippet(
        """
            from jax.experimental.pallas import tpu as pltpu


            def kernel(x_ref, o_ref, acc_ref):
                acc_ref[...] = x_ref[...]
                o_ref[...] = acc_ref[...]


            if __name__ == "__main__":
                launch(kernel, OUT, X, scratch_shapes=[pltpu.VMEM((64, 128), jnp.float32)])
                                                      #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        says=("Scratch memory",),
    ),
    "dynamic_grid": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            @jax.jit
            def run(x, n):
                return pl.pallas_call(kernel, out_shape=OUT, grid=(2, n), compiler_params=plt.CompilerParams())(x)
                                                                 #^^^^^^


            if __name__ == "__main__":
                run(X, 4)
        """,
        says=("axis 1 of the grid",),
    ),
    "buffered": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                spec = pl.BlockSpec((64, 128), lambda i: (0, 0), pipeline_mode=pl.Buffered(2))
                                                                              #^^^^^^^^^^^^^^
                launch(kernel, OUT, X, grid=(2,), in_specs=[spec])
        """,
        says=("num_stages",),
        fixes=1,
    ),
    "padded_elements": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                spec = pl.BlockSpec((pl.Element(64, (0, 8)), 128), lambda i: (i, 0))
                      #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                launch(kernel, OUT, X, grid=(1,), in_specs=[spec])
        """,
        says=("padded element block",),
    ),
}


def test_triton_launch_unsupported(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)
