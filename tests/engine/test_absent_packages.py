"""Packages that are not installed: stand-ins reach the kernels beside their use, and all of it is assumed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Report, Severity, Snapshot, Stage
from pallas_lsp.origins import assumed, source, words

KERNELS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
import absent_one.nn as nn
from absent_one.utils import decorate, Config

class Layer(nn.Module):
    def __init__(self, config: "Config | None" = None):
        super().__init__(config)

@decorate
def body(x_ref, o_ref):
    o_ref[...] = BODY

def op(x):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
TESTS = """
import jax.numpy as jnp, pytest
two = pytest.importorskip("absent_two")
import kernels

def test_op():
    with two.no_grad():
        expected = two.ones(64, 128) * 2
    kernels.Layer()
    kernels.op(jnp.ones((64, 128)))
    assert expected.shape == (64, 128)
"""


@pytest.fixture
async def check(newest_jax_python: Any, tmp_path: Path) -> AsyncIterator[Any]:
    engine = Engine(Settings(python=newest_jax_python.python))

    async def run(kernels: str, **files: str) -> Report:
        for name, text in {"kernels": kernels, **files}.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return await engine.check(Snapshot({}, (str(tmp_path),)), str(tmp_path / "kernels.py"))

    yield run
    await engine.aclose()


async def test_kernels_beside_absent_packages(check: Any) -> None:
    for _ in range(2):  # the second check knows what the first searched for
        report = await check(KERNELS.replace("BODY", "x_ref[...] * 2"), test_kernels=TESTS)
        (status,) = report.launches
        assert {capture.stage for capture in status.captures} == {Stage.LOWER}
        drivers = {capture.driver for capture in status.captures}
        assert all(assumed(driver) and source(driver) == "assumed" for driver in drivers)
        assert "test_kernels.py::test_op with stand-ins for absent packages" in {words(each) for each in drivers}
        assert report.findings == ()


async def test_their_findings_are_hints(check: Any) -> None:
    report = await check(KERNELS.replace("BODY", "jnp.cumsum(x_ref[...], axis=0)"), test_kernels=TESTS)
    assert report.findings
    assert {finding.severity for finding in report.findings} == {Severity.HINT}
    assert all("assumed" in finding.message for finding in report.findings)


async def test_a_module_of_the_workspace_is_not_replaced(check: Any) -> None:
    """A name that the workspace has and that cannot be imported is the user's fault to see."""
    report = await check(
        KERNELS.replace("BODY", "x_ref[...]").replace("absent_one", "own"),
        own="import os\n",
        test_kernels="import jax.numpy as jnp, kernels\ndef test_op():\n    kernels.op(jnp.ones((64, 128)))\n",
    )
    (status,) = report.launches
    assert status.captures == ()
    assert "own" in status.reason
