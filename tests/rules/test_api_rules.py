"""Names and arguments that a jax does not have, found in the text alone; and that correct code has no finding."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from pallas_lsp.engine.judge import judge
from pallas_lsp.model import Document, Finding, Snapshot, WorkerInfo
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import api_table
from pallas_lsp.source.edits import apply_edits
from pallas_lsp.source.positions import Lines

PROJECT = Path(__file__).resolve().parents[2]
HEAD = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as pltriton
"""


def read(text: str, jax: str) -> tuple[Finding, ...]:
    snapshot = Snapshot({"/k.py": Document("/k.py", text)}, ())
    return judge((), Context(snapshot, WorkerInfo(1, "3.12", "python", jax)), ["/k.py"])


def first(body: str, jax: str = "0.12.0.1") -> tuple[Finding, str, str]:
    """The first finding, what it marks, and the body after its first fix."""
    text = HEAD + textwrap.dedent(body)
    found = read(text, jax)
    assert found, "no finding"
    fixed = apply_edits(text, found[0].fixes[0].edits).removeprefix(HEAD) if found[0].fixes else ""
    return found[0], Lines(text).slice(found[0].location.range), fixed


@pytest.mark.parametrize(
    ("body", "marked", "fixed"),
    [
        ("p = pltpu.TPUCompilerParams()\n", "pltpu.TPUCompilerParams", "p = pltpu.CompilerParams()\n"),
        ("p = plgpu.GPUCompilerParams()\n", "plgpu.GPUCompilerParams", "p = plgpu.CompilerParams()\n"),
        ("p = pltriton.TritonCompilerParams()\n", "pltriton.TritonCompilerParams", "p = pltriton.CompilerParams()\n"),
        ("pltpu.semaphore_signal(s)\n", "pltpu.semaphore_signal", "pl.semaphore_signal(s)\n"),
        ("i = plgpu.program_id(0)\n", "plgpu.program_id", "i = pl.program_id(0)\n"),
        ("i = pl.progam_id(0)\n", "pl.progam_id", "i = pl.program_id(0)\n"),
        ("s = pltpu.MemorySpace.ANY\n", "pltpu.MemorySpace.ANY", "s = pl.ANY\n"),
        ("x = pl.load(x_ref, (pl.ds(0, 8), slice(None)))\n", "pl.load", "x = x_ref[pl.ds(0, 8), :]\n"),
        ("x = pl.load(x_ref, idx)\n", "pl.load", "x = x_ref[idx]\n"),
        ("pl.store(o_ref, (slice(0, 8), ...), x)\n", "pl.store", "o_ref[0:8, ...] = x\n"),
        (
            "x = pl.load(x_ref, (i,), mask=m, other=0.0)\n",
            "pl.load",
            "x = pltriton.load(x_ref.at[i], mask=m, other=0.0)\n",
        ),
        (
            "from jax.experimental.pallas.tpu import TPUCompilerParams as P\n",
            "TPUCompilerParams",
            "from jax.experimental.pallas.tpu import CompilerParams as P\n",
        ),
        (
            "from jax.experimental.pallas import gpu as plg\n",
            "gpu",
            "from jax.experimental.pallas import triton as plg\n",
        ),
        (
            "import jax.experimental.pallas.gpu as plg\n",
            "jax.experimental.pallas.gpu",
            "import jax.experimental.pallas.triton as plg\n",
        ),
    ],
)
def test_names(body: str, marked: str, fixed: str) -> None:
    finding, source, after = first(body)
    assert finding.rule == "api-name-missing"
    assert (source, after) == (marked, fixed)


@pytest.mark.parametrize(
    ("body", "marked", "fixed"),
    [
        (
            "plgpu.kernel(body, out_shape=o, scratch_shapes=[s])\n",
            "out_shape",
            "plgpu.kernel(body, out_type=o, scratch_types=[s])\n",
        ),
        ("plgpu.kernel(body, o)\n", "o", "plgpu.kernel(body, out_type=o)\n"),
        ("plgpu.kernel(body, out_type=o, gird=(1,))\n", "gird", "plgpu.kernel(body, out_type=o, grid=(1,))\n"),
        ("pl.pallas_call(body, out_type=o)\n", "out_type", "pl.pallas_call(body, out_shape=o)\n"),
        (
            "f = functools.partial(plgpu.kernel, out_shape=o)\n",
            "out_shape",
            "f = functools.partial(plgpu.kernel, out_type=o)\n",
        ),
        (
            "options = dict(out_shap=o)\npl.pallas_call(body, **options)\n",
            "out_shap",
            "options = dict(out_shape=o)\npl.pallas_call(body, **options)\n",
        ),
        ("x = plgpu.load(x_ref, (i, ...))\n", "(i, ...)", "x = plgpu.load(x_ref.at[i, ...])\n"),
        ("x = plgpu.load(x_ref, ...)\n", "...", "x = plgpu.load(x_ref)\n"),
        ("b = pl.BlockSpec((8,), indexmap=f)\n", "indexmap", "b = pl.BlockSpec((8,), index_map=f)\n"),
    ],
)
def test_arguments(body: str, marked: str, fixed: str) -> None:
    finding, source, after = first(body)
    assert finding.rule == "unexpected-argument"
    assert (source, after) == (marked, fixed)


@pytest.mark.parametrize(
    ("body", "fixed"),
    [
        ("o = jax.ShapeDtypeStruct(jnp.float32, (8, 128))\n", "o = jax.ShapeDtypeStruct((8, 128), jnp.float32)\n"),
        ("s = pltpu.VMEM(jnp.int32, [8, n])\n", "s = pltpu.VMEM([8, n], jnp.int32)\n"),
        ("s = pltpu.VMEM(8, 128, jnp.float32)\n", "s = pltpu.VMEM((8, 128), jnp.float32)\n"),
        ("a = plgpu.ACC(64, 128)\n", "a = plgpu.ACC((64, 128))\n"),
    ],
)
def test_types_with_their_arguments_in_another_order(body: str, fixed: str) -> None:
    finding, source, after = first(body)
    assert finding.rule == "type-arguments-swapped"
    assert source in body
    assert after == fixed


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    P = pltpu.CompilerParams\nexcept AttributeError:\n    P = pltpu.TPUCompilerParams\n",
        'P = pltpu.TPUCompilerParams if hasattr(pltpu, "TPUCompilerParams") else pltpu.CompilerParams\n',
        "if jax.__version_info__ < (0, 7):\n    P = pltpu.TPUCompilerParams\n",
        "s = plgpu.SMEM((8, 128), jnp.float32, transforms=())\n",
        "s = [plgpu.SMEM(shape, dtype), plgpu.ACC(tile), pltpu.VMEM((), jnp.int32), jax.ShapeDtypeStruct(n, m)]\n",
        "plgpu.kernel(body, out_type=o, num_threads=2, thread_name='wg', kernel_name='k')\n",
        "pl.pallas_call(body, *arguments, **options)\n",
        "pl = 3\n",
        "class Local:\n    TPUCompilerParams = 1\n\nLocal.TPUCompilerParams\n",
    ],
)
@pytest.mark.parametrize("jax", ["0.11.2", "0.12.0.1"])
def test_what_is_meant_for_another_jax_or_right_is_left_alone(body: str, jax: str) -> None:
    assert read(HEAD + body, jax) == ()


def test_a_version_between_two_of_the_table_counts_where_both_agree() -> None:
    text = HEAD + "p = pltpu.TPUCompilerParams()\nx = plgpu.load(x_ref, idx)\nplgpu.store(o_ref, x)\n"
    assert [f.rule for f in read(text, "0.11.5")] == ["api-name-missing"]
    assert read(text, "0.9.0") == ()
    assert read(text, "") == ()


def test_deprecated_aliases_are_fine_where_jax_still_takes_them() -> None:
    text = HEAD + "plgpu.kernel(body, out_shape=o, scratch_shapes=[s])\n"
    assert read(text, "0.10.2") == ()


@pytest.mark.parametrize("path", sorted((PROJECT / "tests" / "ops").glob("*.py")), ids=lambda p: p.stem)
def test_real_code_has_no_finding(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for jax in ("0.10.2", "0.11.2", "0.12.0.1"):
        assert read(text, jax) == ()


def test_the_table_tells_what_replaced_a_name() -> None:
    new = api_table.replacement("jax.experimental.pallas.tpu.TPUCompilerParams", (0, 12, 0, 1))
    assert new is not None
    assert (new.dotted, new.certain) == ("jax.experimental.pallas.tpu.CompilerParams", True)
    assert api_table.replacement("jax.experimental.pallas.nothing_like_it", (0, 12, 0, 1)) is None
