import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def accumulator(m, n=128):
    return plgpu.ACC((m, n), jnp.float32)
