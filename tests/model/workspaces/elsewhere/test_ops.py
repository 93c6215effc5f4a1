import jax.numpy as jnp
import ops

SHAPE = (32, 64)


def test_soft():
    assert ops.soft(jnp.ones(SHAPE, jnp.float16)).shape == SHAPE


def test_rotate():
    assert ops.rotate(jnp.ones(SHAPE)).shape == SHAPE
