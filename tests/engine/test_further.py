"""Faults behind the first of a kernel: which a fix uncovers and which it causes, and how they are reported."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.engine.further import can_go_further
from pallas_lsp.engine.verify import attempt
from pallas_lsp.model import Document, Finding, Report, Snapshot
from pallas_lsp.source.edits import apply_edits

HEAD = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
"""
THREE = """

def kernel(x_ref, o_ref, p_ref):
    total = jnp.sum(x_ref[...], axis=1)
    o_ref[...] = total
    p_ref[0:8, :] = jnp.zeros((8, 128), jnp.bfloat16)
    biggest = jnp.max(x_ref[...], axis=1)
    o_ref[...] = biggest


def other(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=0)


def run(x):
    shapes = jax.ShapeDtypeStruct((128, 1), jnp.float32), jax.ShapeDtypeStruct((128, 128), jnp.float32)
    pl.pallas_call(kernel, out_shape=shapes)(x)
    return pl.pallas_call(other, out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32))(x)


if __name__ == "__main__":
    run(jnp.ones((128, 128)))
"""
CAUSED = """

def kernel(x_ref, o_ref):
    total = jnp.sum(x_ref[...], axis=1)
    o_ref[...] = {value}


def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 1), jnp.float32))(x)


if __name__ == "__main__":
    run(jnp.ones((128, 128)))
"""


@pytest.fixture
async def engine(jax_python):
    engine = Engine(Settings(python=jax_python.python, guess=False, discovery=False))
    yield engine
    await engine.aclose()


async def reports(engine: Engine, text: str) -> tuple[Snapshot, Report, Report]:
    path = "/w/file.py"
    snapshot = Snapshot({path: Document(path, HEAD + textwrap.dedent(text), 1)}, ("/w",))
    report = await engine.check(snapshot, path)
    return snapshot, report, await engine.further(snapshot, path, report)


def told(report: Report) -> list[tuple[str, int, str]]:
    return [(f.rule, f.location.range.start.line + 1, f.data.get("behind", "")) for f in report.findings]


async def test_a_kernel_with_three_faults_shows_three(engine: Engine) -> None:
    snapshot, first, all_ = await reports(engine, THREE)
    shape, dtype = "store-shape-mismatch", "store-dtype-mismatch"
    assert told(first) == [(shape, 9, ""), (shape, 16, "")]
    assert told(all_) == [(shape, 9, ""), (dtype, 10, shape), (shape, 12, shape), (shape, 16, "")]
    assert all_.final
    text = snapshot.documents[first.path].text
    for finding in all_.findings:
        best = finding.fixes[0]
        assert best.verified, best
        text_after = apply_edits(text, best.edits)
        assert text_after != text
    assert "line 10 has a further fault, which shows then" in all_.findings[0].fixes[0].reason
    assert "It shows once the fault before it is mended." in all_.findings[1].message


async def test_nothing_further_where_nothing_stops(engine: Engine) -> None:
    _, report, later = await reports(engine, CAUSED.format(value="total[:, None]"))
    assert report.findings == ()
    assert not can_go_further(report)
    assert later is report


async def test_all_are_mended_one_after_the_other(engine: Engine) -> None:
    snapshot, report, _ = await reports(engine, THREE)
    for number in range(6):
        if not report.findings:
            break
        finding = report.findings[0]
        fix = await engine.verify(snapshot, report.path, finding, finding.fixes[0], report)
        assert fix.verified, (number, fix.reason)
        text = apply_edits(snapshot.documents[report.path].text, fix.edits)
        snapshot = Snapshot({report.path: Document(report.path, text, number + 2)}, ("/w",))
        report = await engine.check(snapshot, report.path)
    assert report.findings == ()
    assert number == 4


def with_edit(finding: Finding, snapshot: Snapshot, old: str, new: str):
    """A fix that writes ``new`` for the first ``old`` of the file."""
    from pallas_lsp.model import Edit, Fix
    from pallas_lsp.source.positions import Lines

    text = snapshot.documents[finding.location.path].text
    start = text.index(old)
    range_ = Lines(text).range(start, start + len(old))
    return Fix("Try this", (Edit(finding.location.path, range_, new),))


async def test_a_fault_that_comes_from_the_edit_is_not_accepted(engine: Engine) -> None:
    """The fix makes the value one that the later store refuses."""
    text = THREE.replace("o_ref[...] = biggest", "o_ref[...] = total + biggest")
    snapshot, report, _ = await reports(engine, text)
    finding = report.findings[0]
    fix = with_edit(
        finding, snapshot, "total = jnp.sum(x_ref[...], axis=1)", "total = jnp.sum(x_ref[...]).reshape(1, 1)"
    )
    result = await attempt(engine, snapshot, report.path, finding, fix, report)
    assert result.fix.verified is False
    assert result.uncovered == () or all(f.location.range.start.line != 11 for f in result.uncovered)
