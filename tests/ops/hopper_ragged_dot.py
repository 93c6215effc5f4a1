"""Grouped matrix product for Hopper: the rows of eight groups in one operand."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.ragged_dot_mgpu import ragged_dot

if __name__ == "__main__":
    rows, depth, width, groups = 4096, 2048, 4096, 8
    lhs = jnp.ones((rows, depth), jnp.float16)
    rhs = jnp.ones((groups, depth, width), jnp.float16)
    sizes = jnp.full((groups,), rows // groups, jnp.int32)
    tiles = {"block_m": 128, "block_n": 128, "block_k": 64, "max_concurrent_steps": 4, "grid_block_n": 4}
    print(ragged_dot(lhs, rhs, group_sizes=sizes, **tiles))
