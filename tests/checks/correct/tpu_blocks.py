"""Correct kernels with blocks: partial ones, some left out on purpose, some chosen by data."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BLOCK = 128


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


def rows_of(x, grid, index_map, out_rows=None, body=double, **options):
    rows = x.shape[0] if out_rows is None else out_rows
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((rows, x.shape[1]), x.dtype),
        grid=grid,
        in_specs=[pl.BlockSpec((BLOCK, x.shape[1]), index_map)],
        out_specs=pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0)),
        **options,
    )(x)


def last_block_is_partial(x):
    return rows_of(x, (pl.cdiv(x.shape[0], BLOCK),), lambda i: (i, 0))


def clamped_index(x):
    last = pl.cdiv(x.shape[0], BLOCK) - 1
    return rows_of(x, (last + 1,), lambda i: (jnp.minimum(i + 1, last), 0))


def clipped_index(x):
    last = pl.cdiv(x.shape[0], BLOCK) - 1
    return rows_of(x, (last + 1,), lambda i: (jnp.clip(i - 1, 0, last), 0))


def wrapped_index(x):
    steps = pl.cdiv(x.shape[0], BLOCK)
    return rows_of(x, (steps,), lambda i: (jax.lax.rem(i + 1, steps), 0))


def backwards(x):
    steps = pl.cdiv(x.shape[0], BLOCK)
    return rows_of(x, (steps,), lambda i: (steps - 1 - i, 0))


def part_of_an_aliased_output(x):
    """The rest of the output keeps what the input had there."""
    return rows_of(x, (1,), lambda i: (i, 0), input_output_aliases={0: 0})


def part_of_an_input(x):
    return rows_of(x, (1,), lambda i: (i, 0), out_rows=BLOCK)


def padded_output_is_cut(x):
    """The output is larger than what is written, and only what was written is used."""
    return rows_of(x, (x.shape[0] // BLOCK,), lambda i: (i, 0), out_rows=x.shape[0] + 3 * BLOCK)[: x.shape[0]]


def unused_output(x):
    def body(x_ref, o_ref, unused_ref):
        o_ref[...] = x_ref[...]

    out, _ = pl.pallas_call(
        body,
        out_shape=(jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((8, 128), jnp.float32)),
        grid=(x.shape[0] // BLOCK,),
        in_specs=[pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))],
        out_specs=(pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0)), pl.BlockSpec((8, 128), lambda i: (0, 0))),
    )(x)
    return out


@jax.jit
def output_of_another_variant(x):
    """Only a hint: the caller may leave the second output alone."""

    def body(x_ref, o_ref, unused_ref):
        o_ref[...] = x_ref[...]

    whole = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, out_shape=(whole, whole))(x)


def chosen_by_prefetched_numbers(x, numbers):
    def body(numbers_ref, x_ref, o_ref):
        del numbers_ref
        o_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(numbers.shape[0],),
        in_specs=[pl.BlockSpec((BLOCK, x.shape[1]), lambda i, n: (n[i], 0))],
        out_specs=pl.BlockSpec((BLOCK, x.shape[1]), lambda i, n: (n[i], 0)),
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(numbers, x)


def grid_of_a_traced_size(x, steps):
    return rows_of(x, (steps,), lambda i: (i, 0))


def squeezed_dimension(x):
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1.0

    spec = pl.BlockSpec((None, BLOCK, x.shape[2]), lambda b, i: (b, i, 0))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0], pl.cdiv(x.shape[1], BLOCK)),
        in_specs=[spec],
        out_specs=spec,
    )(x)


def element_offsets(x):
    """Offsets in elements, where that is asked for."""

    def body(x_ref, o_ref):
        o_ref[...] = x_ref[0:BLOCK, :]

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((x.shape[0] - 8, x.shape[1]), x.dtype),
        grid=((x.shape[0] - 8) // BLOCK,),
        in_specs=[pl.BlockSpec((pl.Element(BLOCK + 8), pl.Element(x.shape[1])), lambda i: (i * BLOCK, 0))],
        out_specs=pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0)),
    )(x)


# -- reductions over blocks whose last one is partial ------------------------------------------------------------------


def column_sum(body, x, steps=None):
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        grid=(pl.cdiv(x.shape[0], BLOCK) if steps is None else steps,),
        in_specs=[pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),
    )(x)


def start(o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)


def masked_by_where(x):
    rows = x.shape[0]

    def body(x_ref, o_ref):
        start(o_ref)
        row = pl.program_id(0) * BLOCK + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        o_ref[...] += jnp.sum(jnp.where(row < rows, x_ref[...], 0.0), axis=0, keepdims=True)

    return column_sum(body, x)


def masked_by_factor(x):
    rows = x.shape[0]

    def body(x_ref, o_ref):
        start(o_ref)
        row = pl.program_id(0) * BLOCK + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        o_ref[...] += jnp.sum(x_ref[...] * (row < rows).astype(x_ref.dtype), axis=0, keepdims=True)

    return column_sum(body, x)


def only_whole_blocks_are_read(x):
    def body(x_ref, o_ref):
        start(o_ref)
        o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)

    return column_sum(body, x, x.shape[0] // BLOCK)


def whole_blocks_here_the_rest_masked(x):
    rows = x.shape[0]

    def body(x_ref, o_ref):
        start(o_ref)

        @pl.when(pl.program_id(0) < pl.num_programs(0) - 1)
        def _():
            o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            row = jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
            o_ref[...] += jnp.sum(jnp.where(row < rows % BLOCK, x_ref[...], 0.0), axis=0, keepdims=True)

    return column_sum(body, x)


def sum_used_for_whole_blocks_only(x):
    def body(x_ref, o_ref):
        start(o_ref)
        part = jnp.sum(x_ref[...], axis=0, keepdims=True)

        @pl.when(pl.program_id(0) < pl.num_programs(0) - 1)
        def _():
            o_ref[...] += part

    return column_sum(body, x)


def sum_chosen_afterwards(x):
    def body(x_ref, o_ref):
        start(o_ref)
        part = jnp.sum(x_ref[...], axis=0, keepdims=True)
        o_ref[...] += jnp.where(pl.program_id(0) < pl.num_programs(0) - 1, part, 0.0)

    return column_sum(body, x)


def reduced_along_the_other_dimension(x):
    def body(x_ref, o_ref):
        o_ref[...] = jnp.sum(x_ref[...], axis=1, keepdims=True)

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], 1), x.dtype),
        grid=(pl.cdiv(x.shape[0], BLOCK),),
        in_specs=[pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((BLOCK, 1), lambda i: (i, 0)),
    )(x)


def masked_weights(x, weights):
    """The rows past the end are not taken: their weights were made zero."""
    rows = x.shape[0]

    def body(x_ref, w_ref, o_ref):
        start(o_ref)
        row = pl.program_id(0) * BLOCK + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        weight = jnp.where(row < rows, w_ref[...], 0.0)
        o_ref[...] += jnp.sum(jnp.nan_to_num(x_ref[...]) * weight, axis=0, keepdims=True)

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        grid=(pl.cdiv(x.shape[0], BLOCK),),
        in_specs=[pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))] * 2,
        out_specs=pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),
    )(x, weights)


def softmax_of_narrow_rows(x):
    """The block is wider than the array, and what is past the end is masked before the row's maximum."""

    def body(x_ref, o_ref):
        column = jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
        value = jnp.where(column < x.shape[1], x_ref[...], -jnp.inf)
        value = jnp.exp(value - jnp.max(value, axis=1, keepdims=True))
        o_ref[...] = value / jnp.sum(value, axis=1, keepdims=True)

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 8,),
        in_specs=[spec],
        out_specs=spec,
    )(x)


if __name__ == "__main__":
    even = jnp.ones((4 * BLOCK, 256), jnp.float32)
    odd = jnp.ones((1000, 256), jnp.float32)
    last_block_is_partial(odd)
    clamped_index(odd)
    clipped_index(odd)
    wrapped_index(even)
    backwards(even)
    part_of_an_aliased_output(even)
    part_of_an_input(even)
    padded_output_is_cut(even)
    unused_output(even)
    output_of_another_variant(even[:8])
    chosen_by_prefetched_numbers(even, jnp.array([2, 0, 1, 3], jnp.int32))
    grid_of_a_traced_size(even, jnp.int32(4))
    squeezed_dimension(jnp.ones((3, 1000, 256)))
    element_offsets(jnp.ones((4 * BLOCK + 8, 256)))
    masked_by_where(odd)
    masked_by_factor(odd)
    only_whole_blocks_are_read(odd)
    whole_blocks_here_the_rest_masked(odd)
    sum_used_for_whole_blocks_only(odd)
    sum_chosen_afterwards(odd)
    reduced_along_the_other_dimension(odd)
    masked_weights(odd, odd)
    softmax_of_narrow_rows(jnp.ones((16, 100), jnp.float32))
