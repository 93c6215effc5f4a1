"""Triton stores far behind the end of its output: the launch ends with an illegal access."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def store(x_ref, o_ref):
    far = jnp.arange(128) + (1 << 30)
    plgpu.store(o_ref.at[far], x_ref[...])


def run(x):
    return pl.pallas_call(
        store,
        out_shape=jax.ShapeDtypeStruct((128,), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


if __name__ == "__main__":
    run(jnp.zeros((128,), jnp.float32))
