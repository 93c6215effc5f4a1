"""The gradient of the same attention: its backward kernels are launched through custom_vjp."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.attention import BlockSizes, mha

SIZES = BlockSizes(block_q=64, block_k=64, block_q_dkv=32, block_kv_dkv=32, block_q_dq=32, block_kv_dq=32)


def loss(q, k, v):
    return mha(q, k, v, segment_ids=None, sm_scale=0.125, block_sizes=SIZES).astype(jnp.float32).sum()


if __name__ == "__main__":
    q, k, v = (jnp.ones((1, 512, 4, 64), jnp.float16) for _ in range(3))
    print(jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(q, k, v))
