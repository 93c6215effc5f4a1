"""The machine that the run is on, and the product's own tests for a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import Any

from on_gpu.base import PROJECT, Run
from pallas_lsp.confirm import gpus


def machine(run: Run) -> None:
    found = gpus.find()
    ask = (
        f"import json, shutil, sys; sys.path.insert(0, {str(PROJECT)!r})\n"
        "import jax, pallas_lsp.worker.ptxas as p\n"
        "print(json.dumps({'jax': jax.__version__, 'ptxas': p.find_ptxas(), 'nvdisasm': shutil.which('nvdisasm')}))"
    )
    said = subprocess.run([run.python, "-c", ask], capture_output=True, text=True, check=False)
    smi = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=False).stdout if found.gpus else ""
    run.write(
        "machine.json",
        {
            "gpus": [asdict(gpu) for gpu in found.gpus],
            "reason": found.reason,
            "load": [str(gpus.load(gpu)) for gpu in found.gpus],
            "worker": json.loads(said.stdout) if said.returncode == 0 else said.stderr,
            "nvidia-smi": smi.splitlines(),
            "cpus": os.cpu_count(),
        },
    )


def tests(run: Run, seconds: float) -> None:
    environment = {**os.environ, "PALLAS_LSP_TEST_PYTHONS": run.python}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-rs",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "tests/confirm/test_gpu.py",
    ]
    try:
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        text = f"{_decoded(error.stdout)}\nended after {seconds:.0f} s"
    run.write("tests.txt", text)


def _decoded(data: Any) -> str:
    return data.decode(errors="replace") if isinstance(data, bytes) else str(data or "")
