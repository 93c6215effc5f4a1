"""A barrier of two arrivals at which one thread arrives: the launch does not end."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def copy(x_ref, o_ref, barrier):
    plgpu.barrier_arrive(barrier)
    plgpu.barrier_wait(barrier)
    o_ref[...] = x_ref[...]


def run(x):
    return plgpu.kernel(
        copy,
        out_type=jax.ShapeDtypeStruct((128,), jnp.float32),
        scratch_types=[plgpu.Barrier(num_arrivals=2)],
    )(x)


if __name__ == "__main__":
    run(jnp.zeros((128,), jnp.float32))
