"""Sines of a block with 256 elements a thread, unrolled: code enough to keep the compiler busy for many seconds."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def waves(x_ref, o_ref):
    x = x_ref[...]
    for _ in range(8):
        x = jnp.sin(x) + x
    o_ref[...] = x


def run(x):
    return plgpu.kernel(waves, out_type=jax.ShapeDtypeStruct((128, 256), jnp.float32))(x)


if __name__ == "__main__":
    run(jnp.zeros((128, 256), jnp.float32))
