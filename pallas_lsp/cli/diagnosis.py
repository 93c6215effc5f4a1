"""The facts behind ``pallas-lsp doctor``: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pallas_lsp import __version__
from pallas_lsp.cli.logs import cache_folder, log_folder
from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.interpreter import FOLDERS, find_interpreter
from pallas_lsp.engine.pool import Pool
from pallas_lsp.engine.settings import Settings
from pallas_lsp.model import WorkerInfo

OLDEST_JAX = "0.10"
TESTED_JAX = ("0.10.2", "0.11.2", "0.12.0.1")
BACKENDS = {"mosaic_gpu": "Mosaic GPU", "triton": "Triton", "tpu": "TPU"}
_GPU_QUERY = ("name", "compute_cap", "memory.total", "driver_version")
_GPU_SECONDS = 15


@dataclass(frozen=True)
class Item:
    """One line.  ``state``: ``ok``, ``note`` (worth knowing), ``warning`` (something is missing), ``error``."""

    name: str
    state: str
    value: str
    remedy: str = ""


@dataclass
class Diagnosis:
    items: list[Item] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether kernels can be checked."""
        return not any(item.state == "error" for item in self.items)

    def add(self, name: str, state: str, value: str, remedy: str = "") -> None:
        self.items.append(Item(name, state, value, remedy))


async def diagnose(setting: str | None, cwd: str) -> Diagnosis:
    diagnosis = Diagnosis()
    own = f"{__version__} on Python {platform.python_version()} ({sys.executable})"
    diagnosis.add("pallas-lsp", "ok", own)
    diagnosis.facts.update(
        version=__version__,
        own_python=platform.python_version(),
        own_executable=sys.executable,
        tested_jax=list(TESTED_JAX),
    )
    try:
        python = find_interpreter(str(Path(cwd, "file.py")), (cwd,), setting)
    except WorkerUnavailable as error:
        diagnosis.add("interpreter", "error", f"{error.message}.", error.remedy)
    else:
        why = reason_for(python, setting, cwd)
        diagnosis.add("interpreter", "ok", f"{python} ({why})")
        diagnosis.facts.update(interpreter=python, interpreter_reason=why)
        await _ask_worker(diagnosis, python)
    await _gpus(diagnosis)
    _folders(diagnosis)
    return diagnosis


def reason_for(python: str, setting: str | None, cwd: str) -> str:
    """Why this interpreter was chosen."""
    if setting:
        return "as --python says"
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = os.environ.get(variable)
        if folder and Path(folder) in Path(python).parents:
            return f"the active environment: {variable} is set"
    environment = Path(python).parent.parent
    if environment.name in FOLDERS and environment.parent in (Path(cwd), *Path(cwd).parents):
        where = "in this folder" if environment.parent == Path(cwd) else f"in {environment.parent}"
        return f"the virtual environment {environment.name} {where}"
    return "the Python that runs pallas-lsp: no environment is active, and none was found here or above"


async def _ask_worker(diagnosis: Diagnosis, python: str) -> None:
    printed: list[str] = []
    pool = Pool(Settings(), printed.append)
    began = time.monotonic()
    try:
        async with pool.worker(python) as worker:
            seconds = time.monotonic() - began
            info = worker.info
            assert info is not None
            _jax(diagnosis, info)
            _backends(diagnosis, info)
            _mode(diagnosis, worker.forks, seconds, printed)
    except WorkerUnavailable as error:
        diagnosis.add("jax", "error", f"{error.message}.", error.remedy)
        diagnosis.facts.update(problem=error.kind, printed=printed[-20:])
    finally:
        await pool.close()


def _jax(diagnosis: Diagnosis, info: WorkerInfo) -> None:
    diagnosis.add("python", "ok", info.python)
    diagnosis.facts.update(python=info.python, jax=info.jax)
    if info.jax in TESTED_JAX:
        diagnosis.add("jax", "ok", f"{info.jax} (tested)")
    else:
        tested = ", ".join(TESTED_JAX)
        diagnosis.add(
            "jax", "note", f"{info.jax} (not among the tested versions {tested})",
            "Checks should work from jax 0.10 on; where one does not, a tested version tells whether that is why.",
        )  # fmt: skip


def _backends(diagnosis: Diagnosis, info: WorkerInfo) -> None:
    for backend, name in BACKENDS.items():
        if backend in info.backends:
            diagnosis.add(name, "ok", "kernels can be checked")
        else:
            reason = info.missing.get(backend, "it is not part of this jax")
            remedy = backend_remedy(reason, info)
            # One backend is enough for those who write for one.
            diagnosis.add(name, "warning" if info.backends else "error", f"cannot be imported: {reason}", remedy)
    diagnosis.facts.update(backends=list(info.backends), missing=dict(info.missing))


def backend_remedy(reason: str, info: WorkerInfo) -> str:
    install = f"{info.executable} -m pip install"
    if "absl" in reason:
        return f"{install} absl-py   (Mosaic GPU in jax {info.jax} needs absl-py and does not say so)"
    if "No module named" in reason and "'jax" not in reason:
        module = reason.partition("No module named")[2].strip(" '\"").partition(".")[0].strip("'\"")
        return f"Install what provides the module {module!r} into this environment: {install} ..."
    return f"Install jax and jaxlib of the same version: {install} --upgrade jax"


def _mode(diagnosis: Diagnosis, forks: bool, seconds: float, printed: Sequence[str]) -> None:
    mode = "each check runs in a fork of it" if forks else "each check uses up a process started beforehand"
    diagnosis.add("worker", "ok", f"started in {seconds:.1f} s; {mode}")
    diagnosis.facts.update(worker_seconds=round(seconds, 3), mode="fork" if forks else "spare")
    if not forks and printed:
        diagnosis.items[-1] = Item("worker", "note", diagnosis.items[-1].value, printed[-1])


async def _gpus(diagnosis: Diagnosis) -> None:
    found, reason = await asyncio.to_thread(_ask_nvidia_smi)
    diagnosis.facts["gpus"] = found
    for gpu in found:
        size = f"{int(gpu['memory_mib']) / 1024:.0f} GiB" if gpu["memory_mib"].isdigit() else "unknown memory"
        value = f"{gpu['name']}, compute capability {gpu['compute_capability']}, {size}, driver {gpu['driver']}"
        diagnosis.add("GPU", "ok", value)
    if not found:
        diagnosis.add("GPU", "note", f"none found ({reason}); none is needed to check kernels")


def _ask_nvidia_smi() -> tuple[list[dict[str, str]], str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return [], "nvidia-smi is not on PATH"
    query = [program, f"--query-gpu={','.join(_GPU_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_GPU_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi did not answer: {error}"
    if answer.returncode != 0:
        return [], f"nvidia-smi says: {(answer.stdout or answer.stderr).strip() or answer.returncode}"
    names = ("name", "compute_capability", "memory_mib", "driver")
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines() if line.strip()]
    return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)], "nvidia-smi lists none"


def _folders(diagnosis: Diagnosis) -> None:
    for name, folder in (("log", log_folder()), ("cache", cache_folder())):
        diagnosis.facts[f"{name}_folder"] = str(folder)
        existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
        if os.access(existing, os.W_OK):
            diagnosis.add(f"{name} folder", "ok", str(folder))
        else:
            diagnosis.add(f"{name} folder", "warning", f"{folder} cannot be written", f"Make {existing} writable.")
