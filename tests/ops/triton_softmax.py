"""Softmax over the last axis, Triton, of a width that is no power of two."""

import jax
from jax.experimental.pallas.ops.gpu.softmax import softmax

if __name__ == "__main__":
    print(softmax(jax.random.normal(jax.random.key(0), (8, 128, 1000))))
