"""Inline PTX that ptxas does not know."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def add(x_ref, o_ref):
    (out,) = plgpu.elementwise_inline_asm(
        "addd.f32 $0, $1, $1;",
        args=[x_ref[...]],
        constraints="=r,r",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct((128,), jnp.float32)],
    )
    o_ref[...] = out


def run(x):
    return pl.pallas_call(
        add,
        out_shape=jax.ShapeDtypeStruct((128,), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


if __name__ == "__main__":
    run(jnp.zeros((128,), jnp.float32))
