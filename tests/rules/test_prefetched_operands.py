"""Launches with scalar prefetch whose kernel or grid spec counts the operands otherwise; and what ``pl.dot`` became."""

from __future__ import annotations

from gpu_check import Case, check
from jax_environments import JaxPython
from silent_kernels import tpu

GATHER = """
def kernel({parameters}):
    o_ref[...] = x_ref[...]


def run(idx, n, x):
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch={count},
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, idx_ref, n_ref: (idx_ref[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, idx_ref, n_ref: (i, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
    )(idx, n, x)
"""
CALL = "run(jnp.zeros((4,), jnp.int32), jnp.zeros((1,), jnp.int32), jnp.ones((64, 128)))"


def gather(parameters: str = "idx_ref, n_ref, x_ref, o_ref", count: int = 2) -> str:
    return tpu(GATHER.format(parameters=parameters, count=count), CALL)


PARAMETERS = {
    "none_of_them": Case(gather("x_ref, o_ref"), says=("takes 2 parameters",), fixes=1),
    "the_second": Case(gather("idx_ref, x_ref, o_ref"), says=("takes 3 parameters",), fixes=1),
}
COUNTS = {
    "one_less": Case(gather(count=1), "1", ("`num_scalar_prefetch` is 1, but the index maps take 2 arrays",), fixes=1),
}
DOT = """
def kernel(a_ref, b_ref, o_ref):
    o_ref[...] = pl.dot({arguments})


def run(a, b):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((64, 64), jnp.float32))(a, b)
"""
DOT_CALL = "run(jnp.ones((64, 128), jnp.bfloat16), jnp.ones((64, 128), jnp.bfloat16))"
DOTS = {
    name: Case(tpu(DOT.format(arguments=arguments), DOT_CALL), "pl.dot", fixes=1, since=(0, 12))
    for name, arguments in {
        "turned": "a_ref[...], b_ref[...], trans_b=True",
        "tf32": "a_ref[...], b_ref[...], False, True, allow_tf32=False",
        "precision": "a_ref[...], b_ref[...].T, precision=jax.lax.Precision.DEFAULT",
    }.items()
}

SCALE = """
def kernel(x_ref, w_ref, o_ref, eps, scale):
    o_ref[...] = (x_ref[...] + eps) * w_ref[...] * scale


def run(x, w):
    launch = pl.pallas_call(
        functools.partial(kernel, 1e-6, 2.0), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )
    return launch(x, w)
"""
BOUND = {
    "values_first": Case(
        tpu(SCALE, "run(jnp.ones((8, 128)), jnp.ones((1, 128)))"),
        "1e-6",
        ("gives these values to `x_ref` and `w_ref`", "bind `eps` and `scale` by name"),
        fixes=1,
        related=1,
    ),
}


def test_values_bound_in_place_of_refs(jax_python: JaxPython) -> None:
    check(jax_python, "kernel-parameters-mismatch", BOUND)


def test_parameters_for_prefetched_operands(jax_python: JaxPython) -> None:
    check(jax_python, "kernel-parameters-mismatch", PARAMETERS)


def test_numbers_of_prefetched_operands(jax_python: JaxPython) -> None:
    check(jax_python, "spec-count-mismatch", COUNTS)


def test_products_of_the_old_function(jax_python: JaxPython) -> None:
    check(jax_python, "api-name-missing", DOTS)
