"""The time of a confirmation against the bare lower-and-compile of the same kernel in a hot process on the same GPU."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from on_gpu.base import PROJECT, Nothing, Run, confirmed
from pallas_lsp.confirm.settings import ConfirmSettings

sys.path.insert(0, str(PROJECT / "benchmarks"))

from kernels import KERNELS, Kernel

_TEXTS = 6
_BETWEEN_EDITS = 6.0
"""Seconds until the next process with a started GPU is ready, as between two edits."""


async def ratio(run: Run, seconds: float) -> None:
    end = time.monotonic() + seconds
    subjects = [kernel for kernel in KERNELS if kernel.platform == "cuda" and kernel.driver == "own"]
    results: dict[str, Any] = {kernel.name: {"bare": _bare(run, kernel)} for kernel in subjects}
    for mode, settings in {"warm": ConfirmSettings(), "fork": ConfirmSettings(warm=False)}.items():
        engine = run.engine(settings, Nothing())
        for kernel in subjects:
            times, devices = [], []
            for text in _texts(kernel)[:4]:
                if time.monotonic() > end:
                    break
                path = Path(tempfile.mkdtemp()) / f"{kernel.name}.py"
                path.write_text(text)
                result = await confirmed(engine, path)
                times.append(result["confirm_seconds"])
                devices = result["devices"] or [result["state"], result["gpu"]]
                if settings.warm:
                    await asyncio.sleep(_BETWEEN_EDITS)
            if len(times) < 2:
                continue
            hot = results[kernel.name]["bare"].get("median")
            middle = statistics.median(times[1:])
            quotient = round(middle / hot, 2) if hot else None
            results[kernel.name][mode] = {"seconds": times, "median": middle, "ratio": quotient, "device": devices}
            print(kernel.name, mode, times, quotient, flush=True)
        await engine.aclose()
        run.write("ratio.json", results)


def _texts(kernel: Kernel) -> list[str]:
    """Correct texts, each of them another program."""
    correct = (text for text, faulty in kernel.edits(2 * _TEXTS) if not faulty)
    return list(itertools.islice(correct, _TEXTS))


def _bare(run: Run, kernel: Kernel) -> dict[str, Any]:
    """Lower and compile again and again in one process that does nothing else."""
    requests = [{**kernel.request(text), "device": None} for text in _texts(kernel)]
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": "cuda,cpu"}
    done = subprocess.run(
        [run.python, str(PROJECT / "benchmarks" / "bare.py")],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()][1:]
    wrong = [answer["error"] for answer in answers if answer["error"]]
    if done.returncode != 0 or wrong or len(answers) < 3:
        return {"error": f"{wrong} {done.stderr[-2000:]}"}
    times = [answer["seconds"] for answer in answers]
    return {"times": times, "median": round(statistics.median(times[2:]), 4)}
