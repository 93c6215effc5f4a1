"""Views of windows that no copy can read."""

from __future__ import annotations

from gpu_check import Case, cases, check
from gpu_kernels import gpu_kernel
from jax_environments import JaxPython

LANE = "compiler_params=plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane),"
NEW = (0, 12)


def _view(view: str, index: str = ".at[pl.ds(0, 128), 0, 1, pl.ds(0, 64)]", rows: int = 128, lane: bool = True) -> str:
    body = f"""
def body(x, o, s, bar):
    v = plgpu.im2col_ref(x, {view})
    plgpu.copy_gmem_to_smem(v{index}, s, bar)
    plgpu.barrier_wait(bar)
    o[...] = s[...]
"""
    size = f"({rows}, 64), jnp.float32"
    return gpu_kernel(
        body,
        inputs=("(16, 16, 16, 64), jnp.float32",),
        out=size,
        scratch=(f"plgpu.SMEM({size})", "plgpu.Barrier()"),
        options=(LANE,) if lane else (),
    )


GIVEN = {
    "window": Case(_view("window_shape=(3, 300)"), "(3, 300)", ("size 300", "1 to 256"), since=NEW),
    "rank": Case(_view("window_shape=(3, 3, 3)"), "x", ("of 5 dimensions", "channels last"), since=NEW),
    "too_large": Case(_view("window_shape=(3, 30)"), "(3, 30)", ("larger than spatial dimension 1",), since=NEW),
    "padding": Case(
        _view("window_shape=(3, 3), padding=((1, 1),)"), says=("for each spatial dimension: 2 pairs, not 1",), since=NEW
    ),
    "negative": Case(
        _view("window_shape=(3, 3), padding=((1, 1), (0, -1))"), "((1, 1), (0, -1))", ("(0, -1)",), since=NEW
    ),
    "not_indexed": Case(_view("window_shape=(3, 3)", ""), "v", ("rows, one offset",), since=NEW),
    "many_windows": Case(
        _view("window_shape=(3, 3)", ".at[pl.ds(0, 2048), 0, 1, pl.ds(0, 64)]", 2048).replace("64", "16"),
        "s",
        ("at most 1024 windows", "2048"),
        since=NEW,
    ),
    "warpgroup": Case(_view("window_shape=(3, 3)", lane=False), says=("LoweringSemantics.Lane",), since=NEW),
    "right": Case(_view("window_shape=(3, 3)"), rule="", since=NEW),
}
RULE = cases("im2col-copy-invalid", GIVEN)


def test_im2col_copy_invalid(jax_python: JaxPython) -> None:
    check(jax_python, RULE)
