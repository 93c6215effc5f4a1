"""Grouped matrix product for Blackwell."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.blackwell_matmul_mgpu import MatmulDimension
from jax.experimental.pallas.ops.gpu.blackwell_ragged_dot_mgpu import TuningConfig, ragged_dot_kernel

CONFIG = TuningConfig(
    tile_m=128,
    tile_n=128,
    tile_k=64,
    max_concurrent_steps=4,
    collective=True,
    grid_tile_width=8,
    grid_minor_dim=MatmulDimension.N,
)

if __name__ == "__main__":
    rows, depth, width, groups = 8192, 2048, 4096, 16
    a = jnp.ones((rows, depth), jnp.float16)
    b = jnp.ones((groups, depth, width), jnp.float16)
    sizes = jnp.full((groups,), rows // groups, jnp.int32)
    print(ragged_dot_kernel(a, b, sizes, CONFIG))
