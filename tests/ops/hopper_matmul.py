"""Matrix product for Hopper: persistent, warp-specialised, tiled epilogue."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.hopper_matmul_mgpu import TuningConfig, matmul

CONFIG = TuningConfig(tile_m=128, tile_n=128, tile_k=64, max_concurrent_steps=4, grid_tile_width=8)

if __name__ == "__main__":
    a = jax.random.uniform(jax.random.key(0), (4096, 4096), jnp.float16)
    b = jax.random.uniform(jax.random.key(1), (4096, 8192), jnp.float16)
    print(matmul(a, b, None, CONFIG))
