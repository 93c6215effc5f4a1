"""LayerNorm and its gradient, Triton."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.gpu.layer_norm import layer_norm


def test_layer_norm():
    x = jax.random.normal(jax.random.key(0), (2, 384, 768), jnp.float32)
    w, b = jnp.ones((768,)), jnp.zeros((768,))
    y, gradient = jax.value_and_grad(lambda *args: layer_norm(*args).sum(), argnums=(0, 1, 2))(x, w, b)
    assert gradient[0].shape == x.shape
    assert jnp.isfinite(y)
