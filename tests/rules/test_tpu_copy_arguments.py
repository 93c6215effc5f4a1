"""Copies and semaphores with arguments that do not go together."""

from __future__ import annotations

from jax_environments import JaxPython
from snippets import TPU, Snippet, check

RULE = "tpu-copy-arguments"
SNIPPETS = {
    "value": Snippet(
        """
            def kernel(x_ref, o_ref, sem):
                copy = pltpu.make_async_copy(x_ref[pl.ds(0, 8)], o_ref, sem)
                                            #^^^^^^^^^^^^^^^^^^
                copy.start()
                copy.wait()


            if __name__ == "__main__":
                launch(kernel, S((8, 128), jnp.float32), X, scratch_shapes=[pltpu.SemaphoreType.DMA])
        """,
        says=("is a value",),
        fixes=1,
    ),
    "array_of_semaphores": Snippet(
        """
            def kernel(x_ref, o_ref, sems):
                copy = pltpu.make_async_copy(x_ref, o_ref, sems)
                                                          #^^^^
                copy.start()
                copy.wait()


            if __name__ == "__main__":
                hbm = pl.BlockSpec(memory_space=pl.ANY)
                pl.pallas_call(
                    kernel, out_shape=OUT, in_specs=[hbm], out_specs=hbm, scratch_shapes=[pltpu.SemaphoreType.DMA((2,))]
                )(X)
        """,
        says=("shape (2,)",),
        fixes=1,
        related=("allocated here",),
    ),
    "regular_semaphore": Snippet(
        """
            def kernel(x_ref, o_ref, sem):
                copy = pltpu.make_async_copy(x_ref, o_ref, sem)
                copy.start()
                copy.wait()


            if __name__ == "__main__":
                pl.pallas_call(kernel, out_shape=OUT, scratch_shapes=[pltpu.SemaphoreType.REGULAR])(X)
        """,
        says=("DMA semaphore",),
        fixes=1,
    ),
    "shapes": Snippet(
        """
            def kernel(x_ref, o_ref, sem):
                copy = pltpu.make_async_copy(x_ref.at[pl.ds(0, 8)], o_ref, sem)
                      #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
                copy.start()
                copy.wait()


            if __name__ == "__main__":
                hbm = pl.BlockSpec(memory_space=pl.ANY)
                launch(kernel, OUT, X, in_specs=[hbm], out_specs=hbm, scratch_shapes=[pltpu.SemaphoreType.DMA])
        """,
        says=("(8, 128) and (64, 128)",),
        related=("started here",),
    ),
    "types_of_a_synchronous_copy": Snippet(
        """
            def kernel(x_ref, o_ref):
                pltpu.sync_copy(x_ref, o_ref)


            if __name__ == "__main__":
                anywhere = pl.BlockSpec(memory_space=pl.ANY)
                launch(kernel, S((64, 128), jnp.bfloat16), X, in_specs=[anywhere], out_specs=anywhere)
        """,
        says=("f32 and bf16",),
    ),
    "wait_send": Snippet(
        """
            def kernel(x_ref, o_ref, sem):
                copy = pltpu.make_async_copy(x_ref, o_ref, sem)
                copy.start()
                copy.wait_send()


            if __name__ == "__main__":
                hbm = pl.BlockSpec(memory_space=pl.ANY)
                launch(kernel, OUT, X, in_specs=[hbm], out_specs=hbm, scratch_shapes=[pltpu.SemaphoreType.DMA])
        """,
        says=("`wait()`",),
        fixes=1,
    ),
    "signal_of_a_copy_semaphore": Snippet(
        """
            def kernel(x_ref, o_ref, sem):
                pl.semaphore_signal(sem, 1)
                                   #^^^
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                pl.pallas_call(kernel, out_shape=OUT, scratch_shapes=[pltpu.SemaphoreType.DMA])(X)
        """,
        says=("only copies signal",),
        fixes=1,
    ),
    "no_semaphore_at_all": Snippet(
        """
            def kernel(x_ref, o_ref):
                pl.semaphore_wait(x_ref, 1)
                                 #^^^^^
                o_ref[...] = x_ref[...]


            if __name__ == "__main__":
                launch(kernel, OUT, X)
        """,
        says=("no semaphore",),
    ),
}


def test_tpu_copy_arguments(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, TPU, SNIPPETS)
