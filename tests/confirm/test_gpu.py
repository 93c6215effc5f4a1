"""Confirmations on a real GPU; skipped, visibly, where there is none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confirm_kit import kernel

from pallas_lsp.confirm import gpus
from pallas_lsp.confirm.confirmation import Confirmation, Confirmations
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.confirm.verdicts import Store
from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Document, Snapshot

FOUND = gpus.find()
pytestmark = pytest.mark.skipif(not FOUND.gpus, reason=f"no GPU: {FOUND.reason}")

CASES = Path(__file__).resolve().parent / "cases"
Confirm = Callable[..., Confirmation]


@pytest.fixture
def confirm(tmp_path: Path, newest_jax_python: Any) -> Confirm:
    """``confirm(*texts, pause=0.0, targets=..., **ConfirmSettings)``; the last confirmation, with its own store."""

    def run(*texts: str, pause: float = 0.0, targets: dict[str, Any] | None = None, **settings: Any) -> Confirmation:
        async def work() -> Confirmation:
            wanted = ConfirmSettings(**{"patience": 20.0, "seconds": 45.0, "warm": False, **settings})
            base = Settings(python=newest_jax_python.python, figures=True, discovery=False, confirm=wanted)
            if targets is not None:
                base = Settings(**{**vars(base), "targets": targets})
            engine = Engine(base, print)
            engine._confirmations = Confirmations(wanted, base, print, Store(tmp_path / "store"))
            path = str(tmp_path / "kernels.py")
            try:
                for number, text in enumerate(texts):
                    await asyncio.sleep(pause if number else 0.0)
                    snapshot = Snapshot({path: Document(path, text)}, (str(tmp_path),))
                    report = await engine.check(snapshot, path)
                    assert not report.problems, report.problems
                    confirmation = await engine.confirm(snapshot, path, report)
                return confirmation
            finally:
                await engine.aclose()

        return asyncio.run(work())

    return run


def case(name: str) -> str:
    return (CASES / f"{name}.py").read_text()


def devices(confirmation: Confirmation) -> list[dict[str, Any]]:
    return [
        device
        for status in confirmation.report.launches
        for capture in status.captures
        for device in capture.resources.get("devices", ())
    ]


def verdicts(confirmation: Confirmation) -> list[tuple[int, list[str]]]:
    return [
        (finding.location.range.start.line + 1, [v["verdict"] for v in finding.data.get("verdicts", ())])
        for finding in confirmation.report.findings
    ]


def test_a_correct_kernel_compiles_and_brings_its_figures(confirm: Confirm) -> None:
    confirmation = confirm(kernel())
    (device,) = devices(confirmation)
    assert confirmation.state == "" and device["state"] == "compiled", (confirmation.state, device)
    assert device["gpu"] == FOUND.gpus[0].name
    assert 0 < device["registers"] <= 255 and device["threads"] == 128 and device["blocksPerSm"] > 0


def test_a_fault_of_lowering_is_confirmed(confirm: Confirm) -> None:
    confirmation = confirm(kernel().replace("x_ref[...] * 2", "jnp.cumsum(x_ref[...])"))
    assert verdicts(confirmation) == [(8, ["confirmed"])]


def test_a_launch_is_made_when_allowed(confirm: Confirm) -> None:
    (device,) = devices(confirm(kernel(), launch=True))
    assert device["state"] == "launched"


def test_a_launch_that_waits_for_ever_is_ended(confirm: Confirm) -> None:
    confirmation = confirm(case("waits_for_ever"), launch=True, launch_seconds=5.0)
    assert devices(confirmation)[0]["state"] == "launch timed out"
    assert verdicts(confirmation) == [(10, ["confirmed"])]  # the rule for arrivals said so without a GPU


def test_a_launch_that_fails_is_a_finding(confirm: Confirm) -> None:
    for name in ("cluster_of_32", "too_many_threads"):
        confirmation = confirm(case(name), launch=True)
        assert devices(confirmation)[0]["state"] == "launch failed", name
        assert {verdict for _, each in verdicts(confirmation) for verdict in each} & {"device only", "confirmed"}


def test_the_compiler_is_stopped(confirm: Confirm) -> None:
    (device,) = devices(confirm(case("compiles_for_long"), seconds=1.0))
    assert device["state"] == "timed out"


def test_the_warm_confirmer_says_the_same(confirm: Confirm) -> None:
    text = kernel()
    texts = [text, text.replace("* 2", "* 3"), text.replace("* 2", "* 4")]
    found = confirm(*texts, warm=True, pause=8.0)
    assert devices(found)[0]["state"] == "compiled" and devices(found)[0]["registers"] > 0


def test_a_command_that_reaches_a_gpu(confirm: Confirm, newest_jax_python: Any, tmp_path: Path) -> None:
    before = set(Path(os.environ.get("TMPDIR", "/tmp")).glob("pallas-lsp-*"))
    command = ("env", f"HOME={tmp_path}", "nice", newest_jax_python.python)
    (device,) = devices(confirm(kernel(), command=command))
    assert device["state"] == "compiled"
    left = {p for p in set(Path(os.environ.get("TMPDIR", "/tmp")).glob("pallas-lsp-*")) - before if p.is_dir()}
    assert not left


def test_nothing_is_left_on_the_gpu(confirm: Confirm) -> None:
    gpu = FOUND.gpus[0]
    before = gpus.load(gpu)
    confirm(kernel())
    time.sleep(1)
    after = gpus.load(gpu)
    if before is not None and after is not None:
        assert len(after.processes) <= len(before.processes)
        assert after.free_bytes >= before.free_bytes - (64 << 20)


def test_a_gpu_whose_memory_is_taken(confirm: Confirm, newest_jax_python: Any) -> None:
    """Another process holds nearly all of it: the confirmer waits, then says so, and finds no fault."""
    hold = (
        "import jax, jax.numpy as jnp, sys\n"
        "x = jnp.zeros((1,)) + 1; x.block_until_ready()\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "true", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.99"}
    holder = subprocess.Popen(
        [newest_jax_python.python, "-c", hold], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        confirmation = confirm(kernel(), patience=1.0)
        assert confirmation.state.startswith("busy: "), confirmation.state
        assert verdicts(confirmation) == []
    finally:
        holder.kill()
        holder.wait()


def test_an_instruction_that_the_gpu_lacks(confirm: Confirm) -> None:
    if FOUND.gpus[0].compute_capability.startswith("10"):
        pytest.skip("this GPU has tensor memory")
    confirmation = confirm(case("tensor_memory"))
    assert devices(confirmation)[0]["state"] == "other" and verdicts(confirmation) == []
    confirmation = confirm(case("tensor_memory"), targets={"mosaic_gpu": (FOUND.gpus[0].compute_capability,)})
    assert "device only" in {verdict for _, each in verdicts(confirmation) for verdict in each}


def test_the_command_line(tmp_path: Path, newest_jax_python: Any) -> None:
    path = tmp_path / "k.py"
    path.write_text(kernel())
    command = [sys.executable, "-m", "pallas_lsp", "check", "--confirm", "--resources", "--python"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [*command, newest_jax_python.python, str(path)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "registers" in done.stdout and "Compiled on" in done.stdout
