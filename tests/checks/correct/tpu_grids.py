"""Correct kernels whose steps share blocks, skip stores, or work in place."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def last_result_of_a_running_state(x):
    """Every step stores the state; the last one's is what is wanted."""

    def kernel(x_ref, o_ref, state_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            state_ref[...] = jnp.zeros_like(state_ref)

        state_ref[...] = 0.5 * state_ref[...] + x_ref[...]
        o_ref[...] = state_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)


def stored_in_the_last_step(a, b):
    def kernel(a_ref, b_ref, o_ref, acc_ref, *, steps):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == steps - 1)
        def _():
            o_ref[...] = acc_ref[...]

    return pl.pallas_call(
        functools.partial(kernel, steps=2),
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((256, 256), jnp.float32),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(a, b)


def in_place_with_clamped_neighbours(x):
    """Each step reads and writes its own block; a second input has the neighbour's, in memory of its own."""

    def kernel(x_ref, before_ref, o_ref):
        o_ref[...] = x_ref[...] - before_ref[...]

    own = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[own, pl.BlockSpec((8, 128), lambda i: (jnp.maximum(i - 1, 0), 0))],
        out_specs=own,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        input_output_aliases={0: 0},
    )(x, x)


def a_block_stored_by_one_of_its_steps(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(1) == pl.program_id(0))
        def _():
            o_ref[...] = x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(4, 4),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def stored_again_without_a_change(x):
    """The inputs of the steps along the second axis are the same."""

    def kernel(x_ref, o_ref, n_ref):
        o_ref[...] = x_ref[...] * 2
        n_ref[...] = jnp.full(n_ref.shape, pl.program_id(1), jnp.int32)

    return pl.pallas_call(
        kernel,
        grid=(4, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, 0))],
        out_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, 0)), pl.BlockSpec((8, 128), lambda i, j: (j, 0))],
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((16, 128), jnp.int32)],
    )(x)


def neighbours_where_there_are_any(x):
    def kernel(x_ref, o_ref):
        i = pl.program_id(0)
        o_ref[...] = x_ref[pl.ds(i * 8, 8), :]

        @pl.when(i + 1 < pl.num_programs(0))
        def _():
            o_ref[...] += x_ref[pl.ds((i + 1) * 8, 8), :]

        @pl.when(i > 0)
        def _():
            o_ref[...] += x_ref[pl.ds(jnp.maximum(i - 1, 0) * 8, 8), :]

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((32, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def fetched_ahead(x):
    def kernel(x_ref, o_ref, buffers, semaphores):
        i, n = pl.program_id(0), pl.num_programs(0)

        def fetch(step):
            slot = jax.lax.rem(step, 2)
            return pltpu.make_async_copy(x_ref.at[pl.ds(step * 8, 8), :], buffers.at[slot], semaphores.at[slot])

        @pl.when(i == 0)
        def _():
            fetch(i).start()

        @pl.when(i < n - 1)
        def _():
            fetch(i + 1).start()

        fetch(i).wait()

        @pl.loop(0, 8)
        def _(row):
            o_ref[pl.ds(row, 1), :] = buffers[jax.lax.rem(i, 2), pl.ds(row, 1), :]

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), x.dtype), pltpu.SemaphoreType.DMA((2,))],
    )(x)


if __name__ == "__main__":
    x = jnp.ones((32, 128), jnp.float32)
    a = jnp.ones((256, 256), jnp.float32)
    last_result_of_a_running_state(x)
    stored_in_the_last_step(a, a)
    in_place_with_clamped_neighbours(x)
    a_block_stored_by_one_of_its_steps(x)
    stored_again_without_a_change(x)
    neighbours_where_there_are_any(x)
    fetched_ahead(x)
