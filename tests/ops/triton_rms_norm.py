"""RMSNorm, Triton."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.rms_norm import rms_norm

if __name__ == "__main__":
    x = jnp.ones((4, 512, 1024), jnp.float32)
    print(rms_norm(x, jnp.ones((1024,)), jnp.zeros((1024,))))
