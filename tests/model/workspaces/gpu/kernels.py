"""Several Mosaic GPU kernels: shared helpers, a closure, a partial, a decorator, a loop over constants."""

import functools

import jax
import jax.numpy as jnp
import shared
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from shared import WIDTH, counted, like

ROWS = 64
FACTORS = [1.0, 2.0]
SEEN = []


def scale_kernel(x_ref, o_ref, *, factor):
    o_ref[...] = shared.scaled(x_ref[...], factor)


def running_sum_kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = shared.total(x)


def copy_kernel(x_gmem, o_ref, x_smem, loaded):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, loaded)
    plgpu.barrier_wait(loaded)
    o_ref[...] = x_smem[...]


def make_shift(offset):
    def shift_kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + offset

    return shift_kernel


@counted
def scale(x, factor):
    kernel = functools.partial(scale_kernel, factor=factor)
    return plgpu.kernel(kernel, out_type=like(x))(x)


@jax.jit
def running_sum(x):
    return plgpu.kernel(running_sum_kernel, out_type=like(x))(x)


def copy(x):
    return plgpu.kernel(
        copy_kernel,
        out_type=like(x),
        scratch_types=[plgpu.SMEM((ROWS, WIDTH), jnp.float32), plgpu.Barrier(num_arrivals=1)],
    )(x)


def shift(x, offset):
    SEEN.append(offset)
    return plgpu.kernel(make_shift(offset), out_type=like(x))(x)


if __name__ == "__main__":
    x = jnp.ones((ROWS, WIDTH), jnp.float32)
    for factor in FACTORS:
        x = scale(x, factor)
    print(copy(x))
    print(shift(x, 1.0), pl.cdiv(ROWS, 8))
    print(running_sum(x))
