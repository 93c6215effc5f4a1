"""Kernels with block specs for any backend, on the TPU and through Triton."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from shared import BLOCK, COLUMNS, clip, row_block

GRID = 4
SPEC = pl.BlockSpec((BLOCK, COLUMNS), row_block)
SPECS = [SPEC, pl.BlockSpec((BLOCK, COLUMNS), lambda i: (i, 0))]
STATE = {"limit": 2}


def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = clip(x_ref[...], STATE["limit"]) + y_ref[...]


def row_sum_kernel(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=1)


def step_kernel(x_ref, o_ref, acc_ref, *, steps):
    @pl.when(pl.program_id(0) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += x_ref[...]

    @pl.when(pl.program_id(0) == steps - 1)
    def _():
        o_ref[...] = acc_ref[...]


@jax.jit
def add(x, y):
    return pl.pallas_call(
        add_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(GRID,),
        in_specs=SPECS,
        out_specs=SPEC,
    )(x, y)


def row_sum(x):
    return pl.pallas_call(
        row_sum_kernel,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], 1), x.dtype),
        grid=(x.shape[0] // BLOCK,),
        in_specs=[pl.BlockSpec((BLOCK, COLUMNS), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((BLOCK, 1), lambda i: (i, 0)),
    )(x)


def accumulate(x, steps=GRID):
    return pl.pallas_call(
        functools.partial(step_kernel, steps=steps),
        out_shape=jax.ShapeDtypeStruct((BLOCK, COLUMNS), jnp.float32),
        grid=(steps,),
        in_specs=[SPEC],
        out_specs=pl.BlockSpec((BLOCK, COLUMNS), lambda i: (0, 0)),
        scratch_shapes=[pltpu.VMEM((BLOCK, COLUMNS), jnp.float32)],
    )(x)


def test_add():
    x = jnp.ones((GRID * BLOCK, COLUMNS))
    assert add(x, x).shape == x.shape
    assert row_sum(x).shape == (GRID * BLOCK, 1)


def test_accumulate():
    for steps in (2, GRID):
        assert accumulate(jnp.ones((steps * BLOCK, COLUMNS)), steps).sum() > 0
