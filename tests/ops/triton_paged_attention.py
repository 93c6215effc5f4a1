"""Attention over a paged cache, Triton: 8 sequences, pages of 16 positions."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.paged_attention import paged_attention

if __name__ == "__main__":
    q = jnp.ones((8, 16, 64), jnp.float16)
    pages = jnp.ones((4, 512, 16, 64), jnp.float16)
    tables = jnp.arange(8 * 64, dtype=jnp.int32).reshape(8, 64)
    lengths = jnp.full((8,), 700, jnp.int32)
    print(paged_attention(q, pages, pages, tables, lengths))
