"""What ``doctor`` says of a machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pallas_lsp.cli.diagnosis import Diagnosis, _ask_nvidia_smi, _backends, reason_for
from pallas_lsp.model import WorkerInfo


def items(missing: dict[str, str], *backends: str) -> dict[str, tuple[str, str]]:
    diagnosis = Diagnosis()
    _backends(diagnosis, WorkerInfo(1, "3.11.7", "/env/bin/python", "0.10.2", backends, missing))
    return {item.name: (item.state, item.remedy) for item in diagnosis.items}


def test_absl_that_jax_does_not_declare_is_named() -> None:
    missing = {"mosaic_gpu": "ModuleNotFoundError: No module named 'absl'"}
    state, remedy = items(missing, "triton", "tpu")["Mosaic GPU"]
    assert state == "warning", "the other backends work"
    assert remedy.startswith("/env/bin/python -m pip install absl-py")


def test_without_any_backend_kernels_cannot_be_checked() -> None:
    found = items({"mosaic_gpu": "ImportError: x", "triton": "ImportError: x", "tpu": "No module named 'scipy.io'"})
    assert {state for state, _ in found.values()} == {"error"}
    assert "--upgrade jax" in found["Triton"][1]
    assert "'scipy'" in found["TPU"][1]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for nvidia-smi")
@pytest.mark.parametrize(
    ("script", "names", "reason"),
    [
        ("echo 'H200, 9.0, 143771, 570.1'; echo 'B200, 10.0, 183359, 570.1'", ["H200", "B200"], ""),
        ("echo 'No devices were found'; exit 6", [], "No devices were found"),
        ("true", [], "lists none"),
    ],
)
def test_gpus_are_those_of_nvidia_smi(
    script: str, names: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found, said = _ask_nvidia_smi()
    assert [gpu["name"] for gpu in found] == names
    assert reason in said


def test_without_nvidia_smi_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _ask_nvidia_smi() == ([], "nvidia-smi is not on PATH")


def test_why_an_interpreter_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    here, above = tmp_path / "project", tmp_path
    assert reason_for("/x/bin/python", "x", str(here)) == "as --python says"
    assert "in this folder" in reason_for(str(here / ".venv/bin/python"), None, str(here))
    assert f"in {above}" in reason_for(str(above / "venv/bin/python"), None, str(here))
    assert "runs pallas-lsp" in reason_for("/usr/bin/python3", None, str(here))
    monkeypatch.setenv("VIRTUAL_ENV", "/envs/a")
    assert "VIRTUAL_ENV is set" in reason_for("/envs/a/bin/python", None, str(here))
