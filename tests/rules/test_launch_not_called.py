"""Functions that are called instead of passed, launches that are made and not called, refs that are kept too long."""

from __future__ import annotations

import pytest
from gpu_check import Case, check
from jax_environments import JaxPython
from made import PATH, context
from silent_kernels import GPU, gpu

from pallas_lsp.engine.judge import judge

SMEM = "plgpu.SMEM((128, 128), jnp.float32)"
BODY = "def kernel(x, o):\n    o[...] = x[...] + 1.0\n\n\n"
OUT = "out_type=jax.ShapeDtypeStruct((128,), jnp.float32)"


def launch(made: str, more: str = "", body: str = BODY, shape: str = "(128,)") -> str:
    made = made.replace("OUT", OUT)
    return f"{GPU}\n\n{body}def run(x):\n    {made}{more}\n\n\nif __name__ == '__main__':\n    run(jnp.ones({shape}))\n"


CALLED = {
    "with_the_arrays": Case(
        launch("return plgpu.kernel(kernel(x), OUT)(x)"), "kernel(x)", ("takes the function itself, `kernel`",), fixes=1
    ),
    "with_nothing": Case(launch("made = plgpu.kernel(kernel(), OUT)", "\n    return made(x)"), "kernel()", fixes=1),
    "with_keywords": Case(
        launch(
            "return plgpu.kernel(kernel(scale=2.0), OUT)(x)",
            body="def kernel(x, o, *, scale):\n    o[...] = x[...] * scale\n\n\n",
        ),
        "kernel(scale=2.0)",
        fixes=1,
    ),
    "of_a_scope": Case(
        gpu(
            "def kernel(x, o):\n    def scope(buf):\n        buf[...] = x[...]\n        return buf[...]\n\n"
            f"    o[...] = pl.run_scoped(scope(), {SMEM})\n",
            "",
        ),
        "scope()",
        fixes=1,
    ),
    "of_a_pipeline": Case(
        gpu(
            "def kernel(x, o):\n    def step(_, a, b):\n        b[...] = a[...] * 2.0\n\n"
            "    spec = plgpu.BlockSpec((64, 128), lambda i: (i, 0))\n"
            "    plgpu.emit_pipeline(step(0, x, o), grid=(2,), in_specs=[spec], out_specs=[spec])(x, o)\n",
            "",
        ),
        "step(0, x, o)",
        fixes=1,
    ),
    "made_by_a_function": Case(
        launch(
            "return plgpu.kernel(scaled, OUT)(x)",
            body="def scaled(factor=2.0):\n    def kernel(x, o):\n        o[...] = x[...] * factor\n\n"
            "    return kernel\n\n\n",
        ),
        "scaled",
        ("`scaled` returns the function `kernel`",),
        fixes=1,
    ),
}

PIPELINE = """
def kernel(x, o):
    def step(_, a, b):
        b[...] = a[...] * 2.0

    spec = plgpu.BlockSpec((64, 128), lambda i: (i, 0))
    plgpu.emit_pipeline(step, grid=(2,), in_specs=[spec], out_specs=[spec])
"""
NOT_CALLED = {
    "a_pipeline": Case(
        gpu(PIPELINE, ""),
        "plgpu.emit_pipeline(step, grid=(2,), in_specs=[spec], out_specs=[spec])",
        ("This does nothing",),
        fixes=1,
    ),
}

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


USES = {
    "return y + x": "y",
    "return jnp.sum(y)": "y",
    "return y.astype(x.dtype)": "y",
    "return -y": "y",
    "return y(x) + x": "",
    "return jax.jit(y)(x)": "",
    "return functools.partial(y, x)": "",
    "return y": "",
}


@pytest.mark.parametrize(("use", "marked"), USES.items())
def test_launches_that_are_used_like_arrays(use: str, marked: str) -> None:
    text = launch("y = plgpu.kernel(kernel, OUT)", f"\n    {use}")
    found = [each for each in judge((), context(text), [PATH]) if each.rule == "launch-not-called"]
    assert [context(text).source(each.location) for each in found] == [marked] * bool(marked)


FINE = [
    "return plgpu.kernel(functools.partial(kernel, 1), OUT)(x)",
    "return plgpu.kernel(made(2.0), OUT)(x)",
    "return pl.run_scoped(lambda ref: ref[...], plgpu.SMEM((128,), jnp.float32))",
    "with raises(ValueError):\n        plgpu.kernel(kernel, OUT)",
    "plgpu.kernel(OUT)(kernel)(x)",
]


@pytest.mark.parametrize("made", FINE)
def test_functions_that_are_rightly_called(made: str) -> None:
    body = "def made(scale):\n    def inner(x, o):\n        o[...] = x[...]\n\n    return inner\n\n\n"
    text = launch(made, body=body + BODY)
    rules = [each.rule for each in judge((), context(text), [PATH])]
    assert not {"body-called-not-passed", "launch-not-called"} & set(rules)


def test_functions_called_instead_of_passed(jax_python: JaxPython) -> None:
    check(jax_python, "body-called-not-passed", CALLED)


def test_launches_that_are_not_called(jax_python: JaxPython) -> None:
    check(jax_python, "launch-not-called", NOT_CALLED)


def test_refs_kept_beyond_their_scope(jax_python: JaxPython) -> None:
    check(jax_python, "ref-outlives-scope", OUTLIVES)


def test_scopes_called_like_states(jax_python: JaxPython) -> None:
    check(jax_python, "callback-parameters-mismatch", APART)
