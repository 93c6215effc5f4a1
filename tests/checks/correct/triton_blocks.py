"""Correct Triton kernels: what is out of a block is masked, or never touched."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

BLOCK = 128


def call(body, x, grid, spec, out=None, out_spec=None, **options):
    return pl.pallas_call(
        body,
        out_shape=out or jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=grid,
        in_specs=[spec],
        out_specs=out_spec or spec,
        compiler_params=plgpu.CompilerParams(num_warps=4),
        **options,
    )(x)


def masked_sum_of_rows(x):
    def body(x_ref, o_ref):
        inside = jnp.arange(BLOCK) < x.shape[1]
        value = plgpu.load(x_ref.at[0, :], mask=inside, other=0.0)
        o_ref[...] = jnp.sum(value, keepdims=True)

    out = jax.ShapeDtypeStruct((x.shape[0],), x.dtype)
    return call(
        body, x, (x.shape[0],), pl.BlockSpec((1, BLOCK), lambda i: (i, 0)), out, pl.BlockSpec((1,), lambda i: (i,))
    )


def whole_array_and_own_offsets(x):
    def body(x_ref, o_ref):
        at = pl.ds(pl.program_id(0) * BLOCK, BLOCK)
        o_ref[at] = x_ref[at] * 2.0

    return call(body, x, (x.shape[0] // BLOCK,), pl.BlockSpec(x.shape, lambda i: (0,)))


def neighbour_that_the_last_step_leaves_alone(x):
    """The index of the next block is past the end in the last step, which does not load it."""

    def body(x_ref, next_ref, o_ref):
        o_ref[...] = x_ref[...]

        @pl.when(pl.program_id(0) + 1 < pl.num_programs(0))
        def _():
            o_ref[...] = x_ref[...] + next_ref[...]

    spec = pl.BlockSpec((BLOCK,), lambda i: (i,))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // BLOCK,),
        in_specs=[spec, pl.BlockSpec((BLOCK,), lambda i: (i + 1,))],
        out_specs=spec,
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x, x)


if __name__ == "__main__":
    masked_sum_of_rows(jnp.ones((16, 100), jnp.float32))
    whole_array_and_own_offsets(jnp.ones((4 * BLOCK,), jnp.float32))
    neighbour_that_the_last_step_leaves_alone(jnp.ones((4 * BLOCK,), jnp.float32))
