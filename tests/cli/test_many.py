"""``check`` on many files: every core has one, all share a worker, and a terminal shows how far it is."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pallas_lsp.cli import check
from pallas_lsp.cli.check import usable_cores

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * {number}


if __name__ == "__main__":
    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    pl.pallas_call(kernel, out_shape=shape)(jnp.zeros((8, 128), jnp.float32))
"""
FILES = 5


def settings(*arguments: str):
    parser = argparse.ArgumentParser()
    check.configure(parser)
    return check._settings(parser.parse_args([".", *arguments]), str(ROOT))


def test_each_core_checks_a_file_unless_another_number_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, jobs in ((1, 1), (6, 6), (200, 16)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)), raising=False)
        assert (usable_cores(), settings().jobs) == (jobs, jobs)
    assert settings("--jobs", "3").jobs == 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(FILES):
        (tmp_path / f"k{number}.py").write_text(KERNEL.format(number=number), encoding="utf-8")
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    home = {name: str(folder / ".home") for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    return {**os.environ, **home, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"}


def command(python: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "pallas_lsp", "check", ".", "--python", python, *more]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each run uses up a worker")
def test_all_files_share_one_worker(folder: Path, newest_jax_python) -> None:
    counted = folder / "python"
    counted.write_text(f'#!/bin/sh\necho started >> "{folder}/starts"\nexec {newest_jax_python.python} "$@"\n')
    counted.chmod(0o755)
    ran = subprocess.run(
        command(str(counted), "--jobs", "3"), cwd=folder, env=environment(folder), capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert f"No fault found in {FILES} files with {FILES} launches" in ran.stdout, ran.stderr
    assert (folder / "starts").read_text().split() == ["started"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_how_many_files_are_done(folder: Path, newest_jax_python) -> None:
    import pty

    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        command(newest_jax_python.python), cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 1 << 16):
            shown += data
    except OSError:  # how Linux says that the other end was closed
        pass
    os.close(ours)
    report, _ = run.communicate(timeout=100)
    assert run.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert re.search(rf"\b0/{FILES}\b", text)
    assert re.search(rf"\b[1-{FILES}]/{FILES}\b", text), "the number went up"
    assert re.search(r"checking k\d.py", text)
    assert b"checking" not in report
