"""The kernels that ship inside jax are correct: each is reached through a small driver and gets no finding."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pallas_lsp.engine.engine import Engine
from pallas_lsp.engine.settings import Settings
from pallas_lsp.model import Report, Severity, Snapshot, Stage

HERE = Path(__file__).resolve().parent
DRIVERS = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("test_"))
# Kernels (the names of their bodies) that each driver reaches.
KERNELS = {
    "blackwell_matmul": {"kernel"},
    "blackwell_ragged_dot": {"kernel"},
    "hopper_attention_pipeline": {"fa3_kernel"},
    "hopper_matmul": {"kernel"},
    "hopper_mixed_type_matmul": {"kernel"},
    "hopper_ragged_dot": {"body"},
    "hopper_transposed_ragged_dot": {"body"},
    "triton_attention": {"mha_forward_kernel"},
    "triton_attention_gradient": {"mha_forward_kernel", "_preprocess_backward_kernel", "mha_backward_kernel"},
    "triton_decode_attention": {"attn_forward_kernel"},
    "triton_layer_norm": {
        "layer_norm_forward_kernel",
        "layer_norm_backward_kernel_dx",
        "layer_norm_backward_kernel_dw_db",
    },
    "triton_paged_attention": {"paged_attention_kernel"},
    "triton_rms_norm": {"rms_norm_forward_kernel"},
    "triton_softmax": {"_vmappable_softmax_kernel"},
}


@pytest.fixture(scope="module")
def reports(jax_python) -> dict[str, Report]:
    """The report of every driver, all from one engine."""

    async def check() -> dict[str, Report]:
        engine = Engine(Settings(python=jax_python.python))
        try:
            checks = (engine.check(Snapshot(roots=(str(HERE),)), str(path)) for path in DRIVERS)
            return {Path(report.path).stem: report for report in await asyncio.gather(*checks)}
        finally:
            await engine.aclose()

    return asyncio.run(check())


def test_every_driver_has_an_expectation():
    assert {path.stem for path in DRIVERS} == set(KERNELS)


@pytest.mark.parametrize("driver", KERNELS)
def test_a_kernel_of_jax_is_lowered_and_gets_no_finding(reports: dict[str, Report], driver: str):
    report = reports[driver]
    assert [each for each in report.findings if each.severity in (Severity.ERROR, Severity.WARNING)] == []
    assert report.problems == ()
    captures = [capture for launch in report.launches for capture in launch.captures]
    assert {capture.body.name for capture in captures if capture.body} == KERNELS[driver]
    assert {capture.stage for capture in captures} == {Stage.LOWER}
