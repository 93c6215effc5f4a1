"""Values in registers that cannot be put together, under lane semantics (layout inference tells the others)."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import gpu_kernel
from jax_environments import JaxPython

LANE = "compiler_params=plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane),"


def _joined(value: str, out: str) -> str:
    return gpu_kernel(f"\ndef body(x, o):\n    o[...] = {value}\n", out=f"{out}, jnp.float32", options=(LANE,))


COLUMNS = "jnp.concatenate([x[...], x[...]], axis=1)"
MIXED = "jnp.concatenate([x[...], plgpu.layout_cast(x[...], plgpu.Layout.WGMMA)], axis=0)"
GIVEN = {
    "columns": Case(_joined(COLUMNS, "(128, 256)"), COLUMNS, ("row by row",), since=(0, 11)),
    "mixed": Case(_joined(MIXED, "(256, 128)"), MIXED, ("in different ways",), since=(0, 12)),
    "right": Case(_joined("jnp.concatenate([x[...], x[...]], axis=0)", "(256, 128)"), rule="", since=(0, 11)),
}
RULE = cases("concatenation-layout", GIVEN)


def test_concatenation_layout(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
