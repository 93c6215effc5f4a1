"""Attention for Hopper written with the pipeline emitter, grouped query heads."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.attention_mgpu import TuningConfig, attention_with_pipeline_emitter

if __name__ == "__main__":
    q = jnp.ones((2, 4096, 8, 64), jnp.float16)
    k = v = jnp.ones((2, 2048, 2, 64), jnp.float16)
    config = TuningConfig(block_q=64, block_kv=128, max_concurrent_steps=2, use_schedule_barrier=True)
    print(attention_with_pipeline_emitter(q, k, v, config))
