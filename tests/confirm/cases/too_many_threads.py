"""Sixteen warpgroups are 2048 threads; a block has at most 1024."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def copy(x_ref, o_ref):
    thread = jax.lax.axis_index("wg")
    o_ref[pl.ds(thread * 128, 128)] = x_ref[pl.ds(thread * 128, 128)]


def run(x):
    return plgpu.kernel(copy, out_type=jax.ShapeDtypeStruct((2048,), jnp.float32), num_threads=16, thread_name="wg")(x)


if __name__ == "__main__":
    run(jnp.zeros((2048,), jnp.float32))
