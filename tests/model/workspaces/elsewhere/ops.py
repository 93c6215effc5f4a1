"""Kernels that only the tests beside this file launch."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

SCALE = 2.0


def scaled(x):
    return x * SCALE


def soft_kernel(x_ref, o_ref):
    row = pl.program_id(0)
    x = plt.load(x_ref.at[row, :]).astype(jnp.float32)
    e = jnp.exp(scaled(x) - jnp.max(x))
    plt.store(o_ref.at[row, :], (e / jnp.sum(e)).astype(o_ref.dtype))


def rotate_kernel(x_ref, o_ref):
    x = x_ref[...]
    half = x.shape[-1] // 2
    o_ref[:, :half] = -x[:, half:]
    o_ref[:, half:] = x[:, :half]


def soft(x):
    return pl.pallas_call(
        soft_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0],),
        compiler_params=plt.CompilerParams(num_warps=4),
    )(x)


def rotate(x):
    return pl.pallas_call(
        rotate_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 16,),
        in_specs=[pl.BlockSpec((16, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((16, x.shape[1]), lambda i: (i, 0)),
        compiler_params=plt.CompilerParams(num_warps=4),
    )(x)
