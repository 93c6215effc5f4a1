"""Refs that Python keeps beyond their scope, and scopes that are called like states."""

from __future__ import annotations

from gpu_check import Case, check
from jax_environments import JaxPython
from silent_kernels import gpu

SMEM = "plgpu.SMEM((128, 128), jnp.float32)"
KEPT = """
def kernel(x, o, bar):
    kept = {kept}

    def scope(buf):
        plgpu.copy_gmem_to_smem(x, buf, bar)
        plgpu.barrier_wait(bar)
        {keep}

    pl.run_scoped(scope, plgpu.SMEM((128, 128), jnp.float32))
    o[...] = {use}[...]
"""
OUTLIVES = {
    "in_a_list": Case(
        gpu(KEPT.format(kept="[]", keep="kept.append(buf)", use="kept[0]"), "plgpu.Barrier()"),
        "buf",
        ("is the ref of", "freed when the body"),
        related=1,
    ),
    "in_a_dictionary": Case(
        gpu(KEPT.format(kept="{}", keep="kept['buf'] = buf", use="kept['buf']"), "plgpu.Barrier()"), "buf", related=1
    ),
    "in_a_name": Case(
        gpu(KEPT.format(kept="None", keep="nonlocal kept\n        kept = buf", use="kept"), "plgpu.Barrier()"),
        "buf",
        related=1,
    ),
}
APART = {
    "like_run_state": Case(
        gpu(
            "def kernel(x, o):\n    def scope(buf):\n        buf[...] = x[...]\n        return buf[...]\n\n"
            f"    o[...] = pl.run_scoped(scope)({SMEM})\n",
            "",
        ),
        "pl.run_scoped(scope)",
        ("runs the body at once",),
        fixes=1,
    ),
}


def test_refs_kept_beyond_their_scope(jax_python: JaxPython) -> None:
    check(jax_python, "ref-outlives-scope", OUTLIVES)


def test_scopes_called_like_states(jax_python: JaxPython) -> None:
    check(jax_python, "callback-parameters-mismatch", APART)
