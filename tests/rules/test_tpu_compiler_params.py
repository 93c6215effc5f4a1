"""Compiler parameters that do not fit the launch."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-compiler-params"
SNIPPETS = {
    "too_few": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            def run(x):
                spec = pl.BlockSpec((32, 128), lambda i, j: (i, 0))
                params = pltpu.CompilerParams(dimension_semantics=("parallel",))
                                                                 #^^^^^^^^^^^^^
                return pl.pallas_call(
                    kernel, out_shape=OUT, grid=(2, 1), in_specs=[spec], out_specs=spec, compiler_params=params
                )(x)


            if __name__ == "__main__":
                run(X)
        """,
        says=(
            "1 entry",
            "(2, 1) has 2 axes",
        ),
        fixes=1,
        related=("This is the grid",),
    ),
    "too_many": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                spec = pl.BlockSpec((32, 128), lambda i: (i, 0))
                order = ["parallel", "arbitrary"]
                params = pltpu.CompilerParams(dimension_semantics=order)
                launch(kernel, OUT, X, grid=(2,), in_specs=[spec], out_specs=spec, compiler_params=params)
        """,
        says=(
            "2 entries",
            "1 axis",
        ),
        fixes=1,
    ),
    "word": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                params = pltpu.CompilerParams(dimension_semantics=("paralel",))
                launch(kernel, OUT, X, grid=(1,), compiler_params=params)
        """,
        says=("`paralel`",),
        fixes=1,
    ),
    "superfluous_id": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                launch(kernel, OUT, X, compiler_params=pltpu.CompilerParams(collective_id=0))
        """,
        says=("`collective_id`",),
        fixes=1,
    ),
    "missing_id": Snippet(
        """
            def kernel(x_ref, o_ref):
                barrier = pltpu.get_barrier_semaphore()
                pl.semaphore_signal(barrier, 1)
                pl.semaphore_wait(barrier, 1)
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                pl.pallas_call(kernel, out_shape=OUT)(X)
               #^^^^^^^^^^^^^^
        """,
        says=("collective_id=...",),
        fixes=1,
    ),
    "limit": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                launch(kernel, OUT, X, compiler_params=pltpu.CompilerParams(vmem_limit_bytes=64e6))
        """,
        says=("integer",),
        fixes=1,
    ),
    "dictionary": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                spec = pl.BlockSpec((32, 128), lambda i: (i, 0))
                pl.pallas_call(
                    kernel,
                    out_shape=OUT,
                    grid=(2,),
                    in_specs=[spec],
                    out_specs=spec,
                    compiler_params=dict(mosaic=dict(dimension_semantics=("parallel",))),
                                   #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                )(X)
        """,
        says=("dictionary", "use `pltpu.CompilerParams(...)`"),
        fixes=1,
    ),
    "dictionary_for_triton": Snippet(
        """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                pl.pallas_call(kernel, out_shape=OUT, compiler_params={"triton": {"num_warps": 2}})(X)
                                                                     #^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        says=("dictionary", "use `pltriton.CompilerParams(...)`"),
        fixes=1,
    ),
}


def test_tpu_compiler_params(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
