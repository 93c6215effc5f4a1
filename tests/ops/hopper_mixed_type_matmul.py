"""int8 times bfloat16 for Hopper: the left side is converted in registers."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.hopper_mixed_type_matmul_mgpu import TuningConfig, mixed_matmul_kernel

CONFIG = TuningConfig(tile_m=128, tile_n=128, tile_k=64, max_concurrent_steps=4)

if __name__ == "__main__":
    a = jax.random.randint(jax.random.key(0), (2048, 4096), minval=-128, maxval=127, dtype=jnp.int8)
    b = jax.random.uniform(jax.random.key(1), (4096, 1024), jnp.bfloat16)
    print(mixed_matmul_kernel(a, b, out_dtype=jnp.bfloat16, config=CONFIG))
