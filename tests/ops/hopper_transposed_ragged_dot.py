"""Grouped product over ragged rows (the weights' gradient of a grouped matrix product), Hopper."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.transposed_ragged_dot_mgpu import transposed_ragged_dot

if __name__ == "__main__":
    rows, groups = 4096, 8
    lhs = jnp.ones((rows, 1024), jnp.float16)
    rhs = jnp.ones((rows, 2048), jnp.float16)
    sizes = jnp.full((groups,), rows // groups, jnp.int32)
    tiles = {"block_m": 128, "block_n": 128, "block_k": 64, "max_concurrent_steps": 4, "grid_block_n": 4}
    print(transposed_ragged_dot(lhs, rhs, group_sizes=sizes, **tiles))
