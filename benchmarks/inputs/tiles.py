"""What the kernels beside this file share: how their tiles lie in shared memory."""

import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

SWIZZLE = 128


def tiled(dtype):
    """The transforms with which wgmma and TMA read a tile: rows of 128 bytes, swizzled."""
    return (plgpu.TilingTransform((8, SWIZZLE // jnp.dtype(dtype).itemsize)), plgpu.SwizzleTransform(SWIZZLE))
