"""Sources of kernels for the rules about what jax does not refuse: a head with imports and a main block around them."""

from __future__ import annotations

import textwrap

HEAD = """\
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
"""
TPU = HEAD + "from jax.experimental.pallas import tpu as pltpu\n"
GPU = HEAD + "from jax.experimental.pallas import mosaic_gpu as plgpu\n"


def tpu(body: str, call: str) -> str:
    """A file for TPU: definitions, and a call in the main block."""
    return _file(TPU, body, call)


def gpu(
    body: str, scratch: str, *, out: str = "(128, 128), jnp.float32", more: str = "", x: str = "(128, 128), jnp.float32"
) -> str:
    """One Mosaic GPU kernel of one array: ``body`` defines ``kernel``."""
    launch = f"""
def run(x):
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct({out}),
        scratch_types=[{scratch}],{more}
    )(x)
"""
    return _file(GPU, textwrap.dedent(body) + launch, f"run(jnp.ones({x}))")


def _file(head: str, body: str, call: str) -> str:
    return f'{head}\n\n{textwrap.dedent(body).strip()}\n\n\nif __name__ == "__main__":\n    {call}\n'
