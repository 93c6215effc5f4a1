"""A cluster of 32 blocks: it lowers and compiles, and no device launches it."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def copy(x_ref, o_ref):
    block = jax.lax.axis_index("c")
    o_ref[pl.ds(block * 128, 128)] = x_ref[pl.ds(block * 128, 128)]


def run(x):
    return plgpu.kernel(
        copy,
        out_type=jax.ShapeDtypeStruct((4096,), jnp.float32),
        cluster=(32,),
        cluster_names=("c",),
    )(x)


if __name__ == "__main__":
    run(jnp.zeros((4096,), jnp.float32))
