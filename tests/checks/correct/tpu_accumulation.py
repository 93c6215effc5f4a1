"""Correct TPU kernels that accumulate: nothing is to be found in them."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS, COLS, BLOCK = 512, 256, 128


def launch(body, grid, in_specs, out_specs, out_shape, scratch=(), **options):
    return pl.pallas_call(
        body,
        out_shape=out_shape,
        grid=grid,
        in_specs=in_specs,
        out_specs=out_specs,
        scratch_shapes=scratch,
        **options,
    )


def matmul_reduction_innermost(a, b):
    def body(a_ref, b_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)

    return launch(
        body,
        (a.shape[0] // BLOCK, b.shape[1] // BLOCK, a.shape[1] // BLOCK),
        [pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, k)), pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (k, j))],
        pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, j)),
        jax.ShapeDtypeStruct((a.shape[0], b.shape[1]), jnp.float32),
    )(a, b)


def matmul_scratch_in_nested_conditions(a, b):
    def body(a_ref, b_ref, o_ref, acc_ref):
        def start():
            @pl.when(pl.program_id(0) >= 0)
            def _():
                acc_ref[...] = jnp.zeros_like(acc_ref)

        pl.when(pl.program_id(2) == 0)(start)
        acc_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = acc_ref[...]

    return launch(
        body,
        (a.shape[0] // BLOCK, b.shape[1] // BLOCK, a.shape[1] // BLOCK),
        [pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, k)), pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (k, j))],
        pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, j)),
        jax.ShapeDtypeStruct((a.shape[0], b.shape[1]), jnp.float32),
        [pltpu.VMEM((BLOCK, BLOCK), jnp.float32)],
    )(a, b)


def start_by_where(x):
    def body(x_ref, o_ref):
        before = jnp.where(pl.program_id(0) == 0, 0.0, o_ref[...])
        o_ref[...] = before + jnp.sum(x_ref[...], axis=0, keepdims=True)

    return column_sum(body, x)


def start_by_cond_value(x):
    def body(x_ref, o_ref):
        first = pl.program_id(0) == 0
        before = jax.lax.cond(first, lambda: jnp.zeros_like(o_ref), lambda: o_ref[...])
        o_ref[...] = before + jnp.sum(x_ref[...], axis=0, keepdims=True)

    return column_sum(body, x)


def start_by_factor(x):
    def body(x_ref, o_ref):
        keep = (pl.program_id(0) > 0).astype(jnp.int32)
        o_ref[...] = keep * o_ref[...] + jnp.sum(x_ref[...], axis=0, keepdims=True)

    return column_sum(body, x)


def start_in_the_other_branch(x):
    def body(x_ref, o_ref):
        part = jnp.sum(x_ref[...], axis=0, keepdims=True)

        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = part

        @pl.when(pl.program_id(0) > 0)
        def _():
            o_ref[...] += part

    return column_sum(body, x)


def start_by_rows(x):
    def body(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            @pl.loop(0, o_ref.shape[0])
            def _(row):
                o_ref[pl.ds(row, 1), :] = jnp.zeros((1, o_ref.shape[1]), o_ref.dtype)

        o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)

    return column_sum(body, x)


def column_sum(body, x):
    return launch(
        body,
        (x.shape[0] // BLOCK,),
        [pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))],
        pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),
        jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
    )(x)


def adds_to_an_aliased_input(x, total):
    def body(x_ref, total_ref, o_ref):
        del total_ref
        o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)

    return launch(
        body,
        (x.shape[0] // BLOCK,),
        [pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0)), pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0))],
        pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),
        jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        input_output_aliases={1: 0},
    )(x, total)


def running_maximum(x):
    """The rescaling of attention: every write to the scratch but the first depends on it."""

    def body(x_ref, o_ref, max_ref, sum_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            max_ref[...] = jnp.full_like(max_ref, -jnp.inf)
            sum_ref[...] = jnp.zeros_like(sum_ref)

        before = max_ref[...]
        now = jnp.maximum(before, jnp.max(x_ref[...], axis=0, keepdims=True))
        scale = jnp.exp(before - now)
        sum_ref[...] = sum_ref[...] * scale + jnp.sum(jnp.exp(x_ref[...] - now), axis=0, keepdims=True)
        max_ref[...] = now

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            o_ref[...] = max_ref[...] + jnp.log(sum_ref[...])

    return launch(
        body,
        (x.shape[0] // BLOCK,),
        [pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))],
        pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),
        jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        [pltpu.VMEM((1, x.shape[1]), jnp.float32), pltpu.VMEM((1, x.shape[1]), jnp.float32)],
    )(x)


def scratch_filled_by_a_copy(x, start):
    def body(x_ref, start_ref, o_ref, acc_ref, sem):
        @pl.when(pl.program_id(0) == 0)
        def _():
            copy = pltpu.make_async_copy(start_ref, acc_ref, sem)
            copy.start()
            copy.wait()

        acc_ref[...] += x_ref[...]
        o_ref[...] = acc_ref[...]

    return launch(
        body,
        (x.shape[0] // BLOCK,),
        [pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0)), pl.BlockSpec(memory_space=pl.ANY)],
        pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0)),
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        [pltpu.VMEM((BLOCK, x.shape[1]), x.dtype), pltpu.SemaphoreType.DMA],
    )(x, start)


def counter_in_smem(x):
    def body(x_ref, o_ref, count_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            count_ref[0] = 0

        count_ref[0] = count_ref[0] + 1
        o_ref[...] = x_ref[...] * count_ref[0]

    return launch(
        body,
        (x.shape[0] // BLOCK,),
        [pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))],
        pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0)),
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        [pltpu.SMEM((1,), jnp.int32)],
    )(x)


def written_before_it_is_read(x):
    """Blocks are left and come back to, and each time they are written anew."""

    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2.0
        o_ref[...] = o_ref[...] + 1.0

    return launch(
        body,
        (2, x.shape[0] // BLOCK),
        [pl.BlockSpec((BLOCK, x.shape[1]), lambda r, i: (i, 0))],
        pl.BlockSpec((BLOCK, x.shape[1]), lambda r, i: (i, 0)),
        jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def accumulates_in_a_whole_output(x):
    """The output is one block, which stays in VMEM all the time, whatever the order of the grid."""

    def body(x_ref, o_ref):
        @pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        at = pl.ds(pl.multiple_of(pl.program_id(1) * BLOCK, BLOCK), BLOCK)
        o_ref[at, :] += x_ref[...]

    return launch(
        body,
        (2, x.shape[0] // BLOCK),
        [pl.BlockSpec((BLOCK, x.shape[1]), lambda r, i: (i, 0))],
        pl.BlockSpec(x.shape, lambda r, i: (0, 0)),
        jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def two_results_of_one_loop(x):
    def body(x_ref, total_ref, rows_ref):
        def step(row, total):
            part = jnp.sum(x_ref[pl.ds(row * 8, 8), :], axis=0, keepdims=True)
            rows_ref[pl.ds(row, 1), :] = part
            return total + part

        start = jnp.zeros(total_ref.shape, total_ref.dtype)
        total_ref[...] = jax.lax.fori_loop(0, x_ref.shape[0] // 8, step, start)

    shape = (x.shape[0] // 8, x.shape[1])
    return pl.pallas_call(
        body,
        out_shape=(jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype), jax.ShapeDtypeStruct(shape, x.dtype)),
    )(x)


def total_in_scoped_memory(x):
    def body(x_ref, o_ref):
        def scope(acc_ref):
            acc_ref[...] = jnp.zeros_like(acc_ref)

            @pl.loop(0, x_ref.shape[0] // 8)
            def _(step):
                acc_ref[...] += x_ref[pl.ds(step * 8, 8), :]

            o_ref[...] = acc_ref[...]

        pl.run_scoped(scope, pltpu.VMEM((8, x.shape[1]), jnp.float32))

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, x.shape[1]), x.dtype))(x)


def parameters_by_partial(x, scale=3.0):
    def body(x_ref, o_ref, *, factor):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += factor * jnp.sum(x_ref[...], axis=0, keepdims=True)

    return column_sum(functools.partial(body, factor=scale), x)


if __name__ == "__main__":
    a = jnp.ones((ROWS, ROWS), jnp.float32)
    x = jnp.ones((ROWS, COLS), jnp.float32)
    matmul_reduction_innermost(a, a)
    matmul_scratch_in_nested_conditions(a, a)
    start_by_where(x)
    start_by_cond_value(x)
    start_by_factor(x.astype(jnp.int32))
    start_in_the_other_branch(x)
    start_by_rows(x)
    adds_to_an_aliased_input(x, jnp.zeros((1, COLS)))
    running_maximum(x)
    scratch_filled_by_a_copy(x, x[:BLOCK])
    counter_in_smem(x)
    written_before_it_is_read(x)
    accumulates_in_a_whole_output(x)
    two_results_of_one_loop(x)
    total_in_scoped_memory(x)
    parameters_by_partial(x)
