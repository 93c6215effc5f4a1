"""Accumulators of matrix units that the hardware does not have."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-accumulator-ref"
SNIPPETS = {
    "rank": Snippet(
        """
            Y = jnp.zeros((64, 256), jnp.bfloat16)


            def kernel(x_ref, o_ref):
                def body(acc):
                    o_ref[...] = pltpu.matmul_pop(acc)

                pl.run_scoped(body, pltpu.ACC(0)((256,), jnp.float32))
                                                #^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), Y)
        """,
        says=("(256,)",),
        since=(0, 11),
    ),
    "type": Snippet(
        """
            Y = jnp.zeros((64, 256), jnp.bfloat16)


            def kernel(x_ref, o_ref):
                def body(acc):
                    o_ref[...] = pltpu.matmul_pop(acc)

                pl.run_scoped(body, pltpu.ACC(0)((64, 256), jnp.bfloat16))
                                                           #^^^^^^^^^^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), Y)
        """,
        says=("bfloat16",),
        fixes=1,
        since=(0, 11),
    ),
    "unit": Snippet(
        """
            Y = jnp.zeros((64, 256), jnp.bfloat16)


            def kernel(x_ref, o_ref):
                def body(acc):
                    o_ref[...] = pltpu.matmul_pop(acc)

                pl.run_scoped(body, pltpu.ACC(5)((64, 256), jnp.float32))
                                             #^


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), Y)
        """,
        says=("no matrix unit 5",),
        fixes=1,
        since=(0, 11),
    ),
    "columns": Snippet(
        """
            Y = jnp.zeros((64, 256), jnp.bfloat16)


            def kernel(x_ref, o_ref):
                def body(acc):
                    o_ref[...] = pltpu.matmul_pop(acc)

                pl.run_scoped(body, pltpu.ACC(mxu_id=0)((64, 128), jnp.float32))
                                                            #^^^


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), Y)
        """,
        says=("256, but is 128",),
        fixes=1,
        since=(0, 11),
    ),
    "load": Snippet(
        """
            Y = jnp.zeros((64, 256), jnp.bfloat16)


            def kernel(x_ref, o_ref):
                def body(acc):
                    o_ref[...] = acc[...]

                pl.run_scoped(body, pltpu.ACC(0)((64, 256), jnp.float32))


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), Y)
        """,
        says=("matmul_pop",),
        fixes=1,
        since=(0, 11),
    ),
    "rows_of_factors": Snippet(
        """
            Y = jnp.zeros((64, 256), jnp.bfloat16)


            def kernel(x_ref, o_ref):
                def body(acc):
                    pltpu.matmul_acc_lhs(acc, x_ref[:32], load_staged_rhs=0)

                pl.run_scoped(body, pltpu.ACC(0)((64, 256), jnp.float32))


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), Y)
        """,
        says=(
            "(64, 256)",
            "(32, 256)",
        ),
        since=(0, 11),
    ),
    "register": Snippet(
        """
            Y = jnp.zeros((64, 256), jnp.bfloat16)


            def kernel(x_ref, o_ref):
                def body(acc):
                    pltpu.matmul_acc_lhs(acc, x_ref[...], load_staged_rhs=True)
                    o_ref[...] = pltpu.matmul_pop(acc)

                pl.run_scoped(body, pltpu.ACC(0)((64, 256), jnp.float32))


            if __name__ == "__main__":
                launch(kernel, S((64, 256), jnp.float32), Y)
        """,
        says=("staging register",),
        fixes=1,
        since=(0, 11),
    ),
}


def test_tpu_accumulator_ref(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
