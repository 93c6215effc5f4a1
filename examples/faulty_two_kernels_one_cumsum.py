"""Faulty: of the two kernels here, the second uses ``jnp.cumsum``, which Pallas has no lowering for on this backend."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def exp_kernel(x_ref, o_ref):
    o_ref[...] = jnp.exp(x_ref[...])


def running_sum_kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = jnp.cumsum(x, axis=1)


@jax.jit
def running_sum_of_exp(x):
    like_x = jax.ShapeDtypeStruct(x.shape, x.dtype)
    y = plgpu.kernel(exp_kernel, out_type=like_x)(x)
    return plgpu.kernel(running_sum_kernel, out_type=like_x)(y)


def test_running_sum_of_exp():
    x = jax.random.normal(jax.random.key(0), (128, 128))
    assert jnp.allclose(running_sum_of_exp(x), jnp.cumsum(jnp.exp(x), axis=1), rtol=1e-5)
