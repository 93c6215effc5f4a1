"""Grouped-query attention for decoding, Triton: 16 query heads on 4 key heads, a cache of 2048 positions."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.decode_attention import gqa

if __name__ == "__main__":
    q = jnp.ones((2, 16, 128), jnp.float16)
    cache = jnp.ones((2, 2048, 4, 128), jnp.float16)
    print(gqa(q, cache, cache, kv_seq_len=jnp.array([1000, 2048])))
