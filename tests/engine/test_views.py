"""What a kernel became, as text: on every tested jax, for every backend."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from pallas_lsp.confirm import gpus
from pallas_lsp.engine import Engine, Settings
from pallas_lsp.engine.views import View, Wanted
from pallas_lsp.model import Snapshot

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


async def look(python: str, folder: Path, name: str, kind: str) -> tuple[list[View], str]:
    path = folder / name
    shutil.copyfile(EXAMPLES / name, path)
    first = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if "kernel(" in line or "_call(" in line)
    engine = Engine(Settings(python=python))
    try:
        return await engine.views(Snapshot(roots=(str(folder),)), str(path), Wanted(kind, first, first + 80))
    finally:
        await engine.aclose()


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("hopper_matmul.py", "cuda 9.0", "func.func @matmul_kernel_mosaic_gpu"),
        ("triton_softmax.py", "cuda 9.0", "tt.func public @softmax_kernel"),
        ("tpu_matmul.py", "tpu TPU v6e", "#tpu.memory_space"),
    ],
)
async def test_mlir(jax_python, tmp_path: Path, name: str, target: str, words: str) -> None:
    views, reason = await look(jax_python.python, tmp_path, name, "mlir")
    assert reason == ""
    assert [view.target for view in views] == [target]
    assert words in views[0].text


async def test_jaxpr(jax_python, tmp_path: Path) -> None:
    views, _ = await look(jax_python.python, tmp_path, "triton_softmax.py", "jaxpr")
    assert [view.capture.arguments for view in views] == ["f16[256,1000]"]
    assert "program_id[axis=0]" in views[0].text


async def test_a_faulty_kernel_says_why_there_is_nothing(newest_jax_python, tmp_path: Path) -> None:
    views, reason = await look(newest_jax_python.python, tmp_path, "faulty_start_value_in_run_scoped.py", "mlir")
    assert views == []
    assert "only supported in pl.run_state" in reason


async def test_without_a_python(tmp_path: Path) -> None:
    views, reason = await look(str(tmp_path / "nowhere"), tmp_path, "triton_softmax.py", "jaxpr")
    assert views == []
    assert "there is no Python at" in reason


@pytest.mark.skipif(not gpus.find().gpus, reason=f"no GPU: {gpus.find().reason}")
async def test_ptx(tmp_path: Path) -> None:
    """In the Python that runs the tests, which has a jax that reaches the GPU."""
    views, reason = await look(sys.executable, tmp_path, "hopper_matmul.py", "ptx")
    assert reason == ""
    assert ".visible .entry" in views[0].text, views[0].text[:2000]
    assert "wgmma" in views[0].text
