"""The figures in the reports of the GPU's compiler: registers, spills, shared memory, threads."""

from __future__ import annotations

import glob
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

_REPORTS = (".ptxas", ".resources.txt", ".ptx", ".thunk_sequence.txt")
_LARGEST_REPORT = 8 << 20
_SECONDS = 30
_PATTERNS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "hardware_barriers": re.compile(r"used (\d+) barriers"),
    "static_smem_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
    "smem_bytes": re.compile(r"smem_scratch_bytes=(\d+)"),
    "tmem_columns": re.compile(r"tmem_scratch_cols=(\d+)"),
}
_XLA_LAUNCH = re.compile(r"kCustomKernel\b.*\bthreads: \[(?P<threads>[\d, ]+)\].*\bshared_memory: (?P<smem>\d+) bytes")
_THREADS = re.compile(r"\.(?:max|req)ntid\s+([\d, ]+)")
_ENTRY = re.compile(r"\.entry\s")
_TARGET = re.compile(r"^\.target\s+(sm_\w+)", re.MULTILINE)


def figures(folder: str) -> dict[str, Any]:
    """What the reports in a folder say: the largest of each figure over the kernels of the module."""
    found: dict[str, Any] = {}
    programs: list[str] = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if (
            not name.endswith((".ptxas", ".resources.txt", ".ptx", ".thunk_sequence.txt"))
            or os.path.getsize(path) > _LARGEST_REPORT
        ):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        _take(text, found)
        for launch in _XLA_LAUNCH.finditer(text):
            found["threads"] = max(_product(launch["threads"]), found.get("threads", 0))
            found["smem_bytes"] = max(int(launch["smem"]), found.get("smem_bytes", 0))
        if _TARGET.search(text) and _ENTRY.search(text):
            programs.append(text)
            found["threads"] = max(_threads(text), found.get("threads", 0))
    if programs and "registers" not in found:
        for program in programs:
            _take(assemble(program), found)
    return {figure: number for figure, number in found.items() if number or figure != "threads"}


def _take(text: str, found: dict[str, Any]) -> None:
    for figure, pattern in _PATTERNS.items():
        numbers = [int(number) for number in pattern.findall(text)]
        if numbers:
            found[figure] = max(*numbers, found.get(figure, 0))


def _threads(ptx: str) -> int:
    """Threads of a block, from the directive ``.maxntid`` or ``.reqntid``."""
    return max(map(_product, _THREADS.findall(ptx)), default=0)


def _product(numbers: str) -> int:
    return math.prod(int(number) for number in numbers.split(",") if number.strip())


def find_ptxas() -> str | None:
    """NVIDIA's assembler: on the PATH, in CUDA's own folder, or in the wheels that jax depends on."""
    if (found := shutil.which("ptxas")) is not None:
        return found
    places = [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "ptxas")]
    for folder in sys.path:
        places += glob.glob(os.path.join(folder or os.curdir, "nvidia", "*", "bin", "ptxas"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


def assemble(ptx: str) -> str:
    """What ``ptxas -v`` prints of a program; empty where there is no ptxas or it refuses."""
    assembler, target = find_ptxas(), _TARGET.search(ptx)
    if assembler is None or target is None:
        return ""
    with tempfile.TemporaryDirectory(prefix="pallas-lsp-") as folder:
        source = os.path.join(folder, "kernel.ptx")
        with open(source, "w", encoding="utf-8") as file:
            file.write(ptx[ptx.find(".version") :] if ".version" in ptx else ptx)
        command = [assembler, "-v", f"-arch={target[1]}", source, "-o", os.path.join(folder, "kernel.cubin")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError):
            return ""
    return done.stdout + done.stderr
