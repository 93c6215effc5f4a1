"""Multi-head attention with a causal mask, Triton: batch 2, 1024 positions, 8 heads of 64."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.attention import mha

if __name__ == "__main__":
    q, k, v = (jax.random.normal(key, (2, 1024, 8, 64), jnp.float16) for key in jax.random.split(jax.random.key(0), 3))
    print(mha(q, k, v, segment_ids=None, sm_scale=0.125, causal=True))
