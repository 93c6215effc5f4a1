"""Matrix product for Blackwell: two blocks of a cluster work on one tile."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.blackwell_matmul_mgpu import MatmulDimension, TuningConfig, matmul_kernel

CONFIG = TuningConfig(
    tile_m=128,
    tile_n=128,
    tile_k=64,
    max_concurrent_steps=4,
    collective=True,
    epilogue_tile_n=32,
    grid_minor_dim=MatmulDimension.M,
    grid_tile_width=8,
)

if __name__ == "__main__":
    a = jax.random.uniform(jax.random.key(1), (4096, 4096), jnp.float16)
    b = jax.random.uniform(jax.random.key(2), (4096, 8192), jnp.float16)
    print(matmul_kernel(a, b, CONFIG))
