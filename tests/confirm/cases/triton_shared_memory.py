"""Tiles of a Triton matmul that need more shared memory than a block has."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

SIZE = 512


def matmul(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...])


def run(x, y):
    return pl.pallas_call(
        matmul,
        out_shape=jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=8),
    )(x, y)


if __name__ == "__main__":
    run(jnp.zeros((SIZE, SIZE), jnp.float32), jnp.zeros((SIZE, SIZE), jnp.float32))
