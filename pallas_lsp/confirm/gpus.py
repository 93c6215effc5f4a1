"""The GPUs of this machine and how busy they are, through NVML, else through nvidia-smi.

No GPU, no driver or no such program is a state with a reason, never an error.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SECONDS = 10.0
_MIB = 1 << 20


@dataclass(frozen=True)
class Gpu:
    """``uuid`` selects it whatever the order of the GPUs is."""

    index: int
    uuid: str
    name: str
    compute_capability: str
    memory_bytes: int = 0

    @property
    def kind(self) -> str:
        return f"{self.name} ({self.compute_capability})"


@dataclass(frozen=True)
class Found:
    """The GPUs that may be used; ``reason`` says why there is none."""

    gpus: tuple[Gpu, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Load:
    """Utilisation in percent, free memory, and the processes that compute on a GPU."""

    utilisation: int
    free_bytes: int
    processes: tuple[int, ...] = ()


def find(environ: Mapping[str, str] = os.environ) -> Found:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves."""
    reason = "no NVIDIA driver was found"
    for source in (_nvml_gpus, _smi_gpus):
        try:
            gpus = source()
        except _Unavailable as error:
            reason = str(error) or reason
            continue
        visible = _visible(gpus, environ.get("CUDA_VISIBLE_DEVICES"))
        if gpus and not visible:
            return Found((), "CUDA_VISIBLE_DEVICES hides every GPU")
        return Found(visible, "" if visible else "the NVIDIA driver knows no GPU")
    return Found((), reason)


def load(gpu: Gpu) -> Load | None:
    """How busy a GPU is; None where nothing can tell."""
    for source in (_nvml_load, _smi_load):
        try:
            return source(gpu)
        except _Unavailable:
            continue
    return None


class _Unavailable(Exception):  # noqa: N818
    pass


def _visible(gpus: tuple[Gpu, ...], setting: str | None) -> tuple[Gpu, ...]:
    """As CUDA reads its variable: indices or beginnings of UUIDs, up to the first that names nothing."""
    if setting is None:
        return gpus
    chosen: list[Gpu] = []
    for item in (each.strip() for each in setting.split(",")):
        named = [g for g in gpus if item and (str(g.index) == item or g.uuid.startswith(item))]
        if not named:
            break
        chosen.append(named[0])
    return tuple(chosen)


# -- NVML ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _nvml() -> Iterator[Any]:
    try:
        pynvml: Any = importlib.import_module("pynvml")
        pynvml.nvmlInit()
    except Exception as error:  # the library's errors derive from Exception alone
        raise _Unavailable(
            "" if isinstance(error, ImportError) else f"the NVIDIA driver does not answer: {error}"
        ) from error
    try:
        yield pynvml
    except pynvml.NVMLError as error:
        raise _Unavailable(f"the NVIDIA driver does not answer: {error}") from error
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _nvml_gpus() -> tuple[Gpu, ...]:
    found = []
    with _nvml() as nvml:
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
            uuid, name = _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle))
            memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
            found.append(Gpu(index, uuid, name, f"{major}.{minor}", memory))
    return tuple(found)


def _nvml_load(gpu: Gpu) -> Load:
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        processes = tuple(int(each.pid) for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        utilisation = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        return Load(utilisation, int(nvml.nvmlDeviceGetMemoryInfo(handle).free), processes)


# -- nvidia-smi ------------------------------------------------------------------------------------------------------


def _smi(query: str, *more: str) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        raise _Unavailable
    command = [program, f"--query-{query}", "--format=csv,noheader,nounits", *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise _Unavailable(f"nvidia-smi did not answer: {error}") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().split("\n")[0]
        raise _Unavailable(f"nvidia-smi failed: {said or f'status {done.returncode}'}")
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def _number(cell: str) -> int:
    return int(float(cell)) if cell.replace(".", "", 1).isdigit() else 0


def _parsed(rows: list[list[str]], make: Callable[[list[str]], Gpu]) -> tuple[Gpu, ...]:
    try:
        return tuple(make(row) for row in rows)
    except (ValueError, IndexError) as error:
        raise _Unavailable(f"nvidia-smi answered what is not understood: {error}") from error


def _smi_gpus() -> tuple[Gpu, ...]:
    rows = _smi("gpu=index,uuid,name,compute_cap,memory.total")
    return _parsed(rows, lambda row: Gpu(int(row[0]), row[1], row[2], row[3], _number(row[4]) * _MIB))


def _smi_load(gpu: Gpu) -> Load:
    which = f"--id={gpu.uuid}"
    rows = _smi("gpu=utilization.gpu,memory.free", which)
    processes = _smi("compute-apps=pid", which)
    if not rows or len(rows[0]) < 2:
        raise _Unavailable("nvidia-smi answered what is not understood")
    return Load(_number(rows[0][0]), _number(rows[0][1]) * _MIB, tuple(_number(row[0]) for row in processes))
