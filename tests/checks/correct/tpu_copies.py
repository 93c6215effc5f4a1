"""Correct TPU kernels that copy by themselves."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ANY = pl.BlockSpec(memory_space=pl.ANY)


def copied_and_waited(x):
    def body(x_ref, o_ref, buf, sem):
        copy = pltpu.make_async_copy(x_ref, buf, sem)
        copy.start()
        copy.wait()
        o_ref[...] = buf[...] * 2.0

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[ANY],
        scratch_shapes=[pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA],
    )(x)


def waited_by_another_descriptor(x):
    def body(x_ref, o_ref, buf, sem):
        pltpu.make_async_copy(x_ref, buf, sem).start()
        pltpu.make_async_copy(x_ref, buf, sem).wait()
        o_ref[...] = buf[...] * 2.0

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[ANY],
        scratch_shapes=[pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA],
    )(x)


def double_buffered(x):
    """The next part is on its way while this one is worked on."""

    def body(x_ref, o_ref, buf, sems):
        def part(step, slot):
            return pltpu.make_async_copy(x_ref.at[pl.ds(step * 8, 8), :], buf.at[slot], sems.at[slot])

        steps = x_ref.shape[0] // 8
        part(0, 0).start()

        @pl.loop(0, steps)
        def _(step):
            slot = jax.lax.rem(step, 2)

            @pl.when(step + 1 < steps)
            def _():
                part(step + 1, 1 - slot).start()

            part(step, slot).wait()
            o_ref[pl.ds(step * 8, 8), :] = buf[slot] * 2.0

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[ANY],
        scratch_shapes=[pltpu.VMEM((2, 8, x.shape[1]), x.dtype), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def fetched_for_the_next_step_of_the_grid(x):
    def body(x_ref, o_ref, buf, sem):
        step = pl.program_id(0)

        def part(number):
            return pltpu.make_async_copy(x_ref.at[pl.ds(number * 8, 8), :], buf, sem)

        @pl.when(step == 0)
        def _():
            part(0).start()

        part(step).wait()
        o_ref[...] = buf[...] * 2.0

        @pl.when(step + 1 < pl.num_programs(0))
        def _():
            part(step + 1).start()

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 8,),
        in_specs=[ANY],
        out_specs=pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0)),
        scratch_shapes=[pltpu.VMEM((8, x.shape[1]), x.dtype), pltpu.SemaphoreType.DMA],
    )(x)


def synchronous_copy(x):
    def body(x_ref, o_ref):
        pltpu.sync_copy(x_ref, o_ref)

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), in_specs=[ANY], out_specs=ANY)(x)


def started_here_and_waited_for_in_another_kernel(x):
    def start(x_ref, o_ref, sem):
        pltpu.make_async_copy(x_ref, o_ref, sem).start()

    def finish(x_ref, y_ref, sem, o_ref):
        del o_ref
        pltpu.make_async_copy(x_ref, y_ref, sem).wait()

    semaphore = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    y, sem = pl.pallas_call(
        start,
        out_shape=(jax.ShapeDtypeStruct(x.shape, x.dtype), pltpu.SemaphoreType.DMA(())),
        in_specs=[ANY],
        out_specs=(ANY, semaphore),
    )(x)
    return pl.pallas_call(
        finish,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[ANY, ANY, semaphore],
        out_specs=ANY,
        input_output_aliases={1: 0},
    )(x, y, sem)


def pipelined(x):
    def body(x_ref, o_ref):
        def step(x_block, o_block):
            o_block[...] = x_block[...] * 2.0

        spec = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
        pltpu.emit_pipeline(step, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), in_specs=[ANY], out_specs=ANY)(x)


def pipelined_accumulation(x):
    def body(x_ref, o_ref):
        def step(x_block, o_block):
            @pl.when(pl.program_id(0) == 0)
            def _():
                o_block[...] = jnp.zeros_like(o_block)

            o_block[...] += x_block[...]

        pltpu.emit_pipeline(
            step,
            grid=(x.shape[0] // 8,),
            in_specs=[pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))],
            out_specs=[pl.BlockSpec((8, x.shape[1]), lambda i: (0, 0))],
        )(x_ref, o_ref)

    out = jax.ShapeDtypeStruct((8, x.shape[1]), x.dtype)
    return pl.pallas_call(body, out_shape=out, in_specs=[ANY], out_specs=ANY)(x)


def waits_for_all_at_the_end(x):
    def body(x_ref, o_ref, sem):
        @pl.loop(0, x.shape[0] // 8)
        def _(step):
            at = pl.ds(step * 8, 8)
            pltpu.make_async_copy(x_ref.at[at, :], o_ref.at[at, :], sem).start()

        @pl.loop(0, x.shape[0] // 8)
        def _(step):
            at = pl.ds(step * 8, 8)
            pltpu.make_async_copy(x_ref.at[at, :], o_ref.at[at, :], sem).wait()

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[ANY],
        out_specs=ANY,
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(x)


if __name__ == "__main__":
    x = jnp.ones((64, 128), jnp.float32)
    copied_and_waited(x)
    waited_by_another_descriptor(x)
    double_buffered(x)
    fetched_for_the_next_step_of_the_grid(x)
    synchronous_copy(x)
    started_here_and_waited_for_in_another_kernel(x)
    pipelined(x)
    pipelined_accumulation(x)
    waits_for_all_at_the_end(x)
