"""A file with a launch, two tests and a main block."""

KERNEL = """
import jax
from jax.experimental import pallas as pl


def body(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def launch(x):
    return pl.pallas_call(body, out_shape=x)(x)


def test_one():
    launch(1)


def test_two():
    launch(2)


if __name__ == "__main__":
    launch(0)
"""
