"""What a kernel cannot print."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, TRITON, Snippet, check

RULE = "debug-print-arguments"
SNIPPETS = {
    "placeholder": Snippet(
        """
            def kernel(x_ref, o_ref):
                pl.debug_print("x = {}", x_ref[0, 0])
                              #^^^^^^^^
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("placeholders",),
        fixes=1,
    ),
    "keyword": Snippet(
        """
            def kernel(x_ref, o_ref):
                jax.debug.print("x = {x}", x=x_ref[0, 0])
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("placeholders",),
        fixes=1,
    ),
    "tpu_vector": Snippet(
        """
            from jax.experimental.pallas import tpu as pltpu


            def kernel(x_ref, o_ref):
                pl.debug_print("x = {} !", x_ref[...])
                              #^^^^^^^^^^
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                pl.pallas_call(kernel, out_shape=OUT, in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)])(X)
        """,
        says=("end with `{}`",),
        fixes=1,
    ),
}
ON_TPU = {
    "tpu_small_type": Snippet(
        """
            def kernel(x_ref, o_ref):
                pl.debug_print("x = {}", x_ref[0, 0])
                                        #^^^^^^^^^^^
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                y = X.astype(jnp.bfloat16)
                launch(kernel, S(y.shape, y.dtype), y, in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)])
        """,
        says=(
            "bf16[]",
            "32-bit",
        ),
        fixes=1,
    ),
    "tpu_ordered": Snippet(
        """
            def kernel(x_ref, o_ref):
                jax.debug.print("x = {}", x_ref[0, 0], ordered=True)
                                                              #^^^^
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                launch(kernel, S((64, 128), jnp.int32), I, in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)])
        """,
        says=("order",),
        fixes=1,
    ),
}


def test_debug_print_arguments(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TRITON, SNIPPETS)


def test_debug_print_on_tpu(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, ON_TPU)
