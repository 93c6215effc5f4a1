"""Confirmations: of faults that only a device shows, and of a folder of cases."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from pathlib import Path
from typing import Any

from on_gpu.base import PROJECT, Run, confirmed
from pallas_lsp.confirm import confirmation
from pallas_lsp.confirm.confirmer import Confirmer
from pallas_lsp.confirm.jobs import Answer, Job
from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.engine.codec import _converter

CASES = PROJECT / "tests" / "confirm" / "cases"


async def cases(run: Run, seconds: float) -> None:
    """Each case with a launch; what jax says is kept whole."""
    faults: list[Any] = []
    real = confirmation.judge

    def judge(found: Any, context: Any) -> Any:
        faults[:] = list(found)
        return real(faults, context)

    confirmation.judge = judge  # type: ignore[assignment]
    settings = ConfirmSettings(launch=True, seconds=15, launch_seconds=8, patience=20, warm=False)
    results = []
    end = time.monotonic() + seconds
    try:
        for targets in ({"mosaic_gpu": ("9.0", "10.0")}, {"mosaic_gpu": ("9.0",)}):
            engine = run.engine(settings, targets=targets)
            for path in sorted(CASES.glob("*.py")):
                if time.monotonic() > end or (len(targets["mosaic_gpu"]) == 1 and "tensor" not in path.name):
                    continue
                faults.clear()
                result = await confirmed(engine, path)
                result["faults"] = [_converter().unstructure(fault) for fault in faults]
                result["targets"] = targets
                results.append(result)
                print(result["case"], result["verdicts"], result["states"], flush=True)
            await engine.aclose()
    finally:
        confirmation.judge = real
        run.write("faults.json", results)


async def corpus(run: Run, folder: Path, jobs: int) -> None:
    files = [path for path in sorted(folder.glob("*/*.py")) if _for_gpu(path)]
    engine = run.engine(ConfirmSettings(seconds=30, patience=120, warm=False), jobs=jobs)
    results: dict[str, dict[str, Any]] = {}
    on_gpu: dict[str, float] = {}
    real = Confirmer._run

    async def timed(self: Confirmer, job: Job) -> Answer:
        """A job without the time that it waited for others."""
        began = time.perf_counter()
        try:
            return await real(self, job)
        finally:
            on_gpu[job.path] = round(time.perf_counter() - began, 2)

    Confirmer._run = timed  # type: ignore[method-assign]
    waiting = asyncio.Semaphore(jobs)

    async def one(path: Path) -> None:
        async with waiting:
            if run.left() < 45:
                return
            try:
                results[str(path)] = await confirmed(engine, path)
            except Exception:
                results[str(path)] = {"case": f"{path.parent.name}/{path.stem}", "error": traceback.format_exc()}

    await asyncio.gather(*(one(path) for path in files))
    await engine.aclose()
    Confirmer._run = real  # type: ignore[method-assign]
    for path, result in results.items():
        result["gpu_seconds"] = on_gpu.get(path)
    ordered = [results[str(path)] for path in files if str(path) in results]
    missing = [f"{path.parent.name}/{path.stem}" for path in files if str(path) not in results]
    run.write("corpus.json", {"results": ordered, "not run": missing})


def _for_gpu(path: Path) -> bool:
    try:
        case = json.loads((path.parent / "case.json").read_text())
    except (OSError, ValueError):
        return True
    return case.get("backend") != "tpu"
