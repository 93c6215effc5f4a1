"""The rules that read the text alone: what they find, and what they leave alone."""

from __future__ import annotations

import textwrap

import pytest
from made import PATH, context

from pallas_lsp.engine.judge import judge
from pallas_lsp.model import Finding
from pallas_lsp.source.edits import apply_edits
from pallas_lsp.source.syntax import parse

HEAD = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
"""


def read(body: str, rule: str) -> tuple[str, list[Finding]]:
    text = HEAD + textwrap.dedent(body)
    return text, [each for each in judge((), context(text), [PATH]) if each.rule == rule]


LATE = [
    ("specs = [pl.BlockSpec((8, 128), lambda i: (i, [k])) for k in range(2)]", "lambda i, k=k: (i, k)"),
    ("specs = tuple(pl.BlockSpec((8, 128), lambda i: ([k], i)) for k in (0, 1))", "lambda i, k=k: (k, i)"),
    ("specs = {k: (pl.BlockSpec((8, 128), lambda i: (i, [n])), None) for k, n in NAMES}", "lambda i, n=n: (i, n)"),
    ("specs = []\nfor k in range(2):\n    specs.append(pl.BlockSpec((8, 128), lambda i: (i, [k])))", "lambda i, k=k"),
    ("specs = {}\nfor k in 'ab':\n    specs[k] = pl.BlockSpec((8,), index_map=lambda i: (i + len([k]),))", "i, k=k:"),
]


@pytest.mark.parametrize(("body", "fixed"), LATE)
def test_index_maps_that_use_a_loop_variable(body: str, fixed: str) -> None:
    plain = body.replace("[k]", "k").replace("[n]", "n")
    plain = plain.replace("specsk", "specs[k]")
    text, (found,) = read(plain, "index-map-uses-loop-variable")
    range_ = found.location.range
    marked = text.splitlines()[range_.start.line][range_.start.character : range_.end.character]
    assert marked in ("k", "n")
    assert "all specs use its last value" in found.message
    (fix,) = found.fixes
    mended = apply_edits(text, fix.edits)
    parse(mended)
    assert fixed in mended
    assert not judge((), context(mended), [PATH])


@pytest.mark.parametrize(
    "body",
    [
        "specs = [pl.BlockSpec((8, 128), lambda i, k=k: (i, k)) for k in range(2)]",
        "specs = [pl.BlockSpec((8, k), lambda i: (i, 0)) for k in range(2)]",
        "specs = [pl.BlockSpec((8, 128), functools.partial(rows, k)) for k in range(2)]",
        "outs = [pl.pallas_call(f, out_specs=pl.BlockSpec((8, 128), lambda i: (i, k)), out_shape=x)(x) for k in KS]",
        "for k in KS:\n    x = pl.pallas_call(f, in_specs=[pl.BlockSpec((8,), lambda i: (k,))], out_shape=x)(x)",
        "for k in KS:\n    spec = pl.BlockSpec((8,), lambda i: (k,))\n    x = pl.pallas_call(f, in_specs=[spec])(x)",
        "for k in KS:\n    specs = []\n    specs.append(pl.BlockSpec((8,), lambda i: (k,)))\n    run(specs)",
        "def spec(k):\n    return pl.BlockSpec((8,), lambda i: (k,))\nspecs = [spec(k) for k in range(2)]",
        "specs = [pl.BlockSpec((8,), (lambda k: lambda i: (k,))(k)) for k in range(2)]",
    ],
)
def test_index_maps_that_are_right(body: str) -> None:
    assert read(body, "index-map-uses-loop-variable")[1] == []


def test_an_update_that_nothing_uses() -> None:
    body = """
    def kernel(x_ref, o_ref):
        acc = jnp.zeros((8, 128))
        acc.at[0, :].set(x_ref[0, :])
        o_ref[...] = acc
    """
    text, (found,) = read(body, "update-result-dropped")
    assert "`acc` stays as it is" in found.message
    (fix,) = found.fixes
    mended = apply_edits(text, fix.edits)
    assert "        acc = acc.at[0, :].set(x_ref[0, :])\n" in mended.replace("\n    acc", "\n        acc")
    assert not judge((), context(mended), [PATH])


@pytest.mark.parametrize(
    "statement",
    [
        "o_ref.at[0].set(1.0)",  # a ref is changed in place
        "view = o_ref.at[...]\n    view.at[0].set(1.0)",
        "view = pick(o_ref)\n    view.at[0].set(1.0)",
        "acc = jnp.zeros(8)\n    acc = acc.at[0].set(1.0)",
        "acc = jnp.zeros(8)\n    print(acc.at[0].set(1.0))",
    ],
)
def test_updates_that_are_used(statement: str) -> None:
    assert read(f"def kernel(x_ref, o_ref):\n    {statement}\n", "update-result-dropped")[1] == []


TPU = "from jax.experimental.pallas import tpu as pltpu\n"
UNCALLED = [
    ("def k(x, sem):\n    copy = pltpu.make_async_copy(x, x, sem)\n    copy.start\n", "copy.start", "copy.start()"),
    ("def k(c):\n    c().wait_send\n", "c().wait_send", "c().wait_send()"),
    (
        "def k(o_ref):\n    def first():\n        o_ref[...] = 0\n\n    pl.when(pl.program_id(0) == 0)\n",
        "pl.when(pl.program_id(0) == 0)",
        "pl.when(pl.program_id(0) == 0)(first)",
    ),
    (
        "def k(x, o):\n    pltpu.emit_pipeline(body, grid=(8,), in_specs=[s], out_specs=s)\n",
        "pltpu.emit_pipeline(body, grid=(8,), in_specs=[s], out_specs=s)",
        "out_specs=s)(x, o)",
    ),
    ("def k(o_ref):\n    pl.when(o_ref[0] > 0)\n", "pl.when(o_ref[0] > 0)", ""),
    ("def f(x):\n    pl.pallas_call(kernel, out_shape=x)\n", "pl.pallas_call(kernel, out_shape=x)", ""),
]
CALLED = [
    "def k(x, sem):\n    copy = pltpu.make_async_copy(x, x, sem)\n    copy.start()\n    f = copy.wait\n    f()\n",
    "def k(o_ref):\n    pl.when(o_ref[0] > 0)(lambda: None)\n",
    "def k(o_ref):\n    @pl.when(o_ref[0] > 0)\n    def _():\n        pass\n",
    "pl.pallas_call(kernel, out_shape=x)(x)\n",
]


@pytest.mark.parametrize(("body", "marked", "fixed"), UNCALLED)
def test_functions_that_are_made_and_not_called(body: str, marked: str, fixed: str) -> None:
    text, (found,) = read(TPU + body, "function-not-called")
    range_ = found.location.range
    assert text.splitlines()[range_.start.line][range_.start.character : range_.end.character] == marked
    assert bool(found.fixes) == bool(fixed)
    for fix in found.fixes:
        mended = apply_edits(text, fix.edits)
        assert fixed in mended
        assert not judge((), context(mended), [PATH])


@pytest.mark.parametrize("body", CALLED)
def test_functions_that_are_called(body: str) -> None:
    assert not read(TPU + body, "function-not-called")[1]


KERNEL = "def kernel(x_ref, o_ref, *, scale=1):\n    o_ref[...] = x_ref[...]\n\n\n"
PASSED = [
    ("pl.pallas_call(kernel(x, o), out_shape=o)(x)", "pl.pallas_call(kernel, out_shape=o)(x)"),
    ("pl.pallas_call(kernel(scale=2), out_shape=o)(x)", "pl.pallas_call(functools.partial(kernel, scale=2), out_"),
    ("pl.run_scoped(kernel(), buffer, buffer)", "pl.run_scoped(kernel, buffer, buffer)"),
    ("pl.run_state(kernel(x_ref=x))(x)", "pl.run_state(functools.partial(kernel, x_ref=x))(x)"),
    ("pl.pallas_call(functools.partial(kernel(x), scale=2), out_shape=o)(x)", "functools.partial(kernel, scale=2)"),
]


@pytest.mark.parametrize(("body", "fixed"), PASSED)
def test_kernels_that_are_called(body: str, fixed: str) -> None:
    text, (found,) = read(KERNEL + body, "kernel-called")
    assert found.location.range.start.line == text.count("\n")
    (fix,) = found.fixes
    mended = apply_edits(text, fix.edits)
    assert fixed in mended
    assert not judge((), context(mended), [PATH])


def test_what_makes_a_kernel_is_called() -> None:
    made = "def make(n):\n    def kernel(x_ref, o_ref):\n        o_ref[...] = x_ref[...]\n\n    return kernel\n\n\n"
    for use in ("pl.pallas_call(make(2), out_shape=o)(x)", "pl.run_scoped(make(2), buffer)"):
        assert not read(made + use, "kernel-called")[1]


def test_backends_that_are_not_imported() -> None:
    text, (found,) = read("scratch = [pl.tpu.VMEM((8, 128), jnp.float32)]", "api-name-missing")
    assert "nothing imports" in found.message
    (fix,) = found.fixes
    mended = apply_edits(text, fix.edits)
    assert "import jax.experimental.pallas.tpu as pltpu\n" in mended
    assert "[pltpu.VMEM((8" in mended
    assert not judge((), context(mended), [PATH])
    for imports in (TPU, "import jax.experimental.pallas.tpu\n", "import my_kernels\n", "from . import tools\n"):
        assert not read(imports + "scratch = [pl.tpu.VMEM((8, 128), jnp.float32)]", "api-name-missing")[1]
