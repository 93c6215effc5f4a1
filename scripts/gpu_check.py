"""What can only be said with a GPU: run on a machine that has one.

    python3 scripts/gpu_check.py OUT [--corpus FOLDER] [--minutes 9] [--only tests,cases,ratio,corpus]

It needs this project's dependencies and a jax that reaches the GPU, and no network.  In OUT it writes
``machine.json``, ``tests.txt`` (the GPU tests), ``faults.json`` (what jax says of faults that only a device shows),
``ratio.json`` (a confirmation against the bare lower-and-compile in a hot process) and ``corpus.json`` (each file of a
folder of cases: findings without a GPU, verdicts, times, figures).  Each part has a share of the time; what does not
fit is named.  ``scripts/gpu_report.py OUT docs/gpu-runs.md`` makes the page of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from pallas_lsp.confirm import gpus  # noqa: E402
from pallas_lsp.confirm.confirmation import Confirmations  # noqa: E402
from pallas_lsp.confirm.confirmer import Confirmer  # noqa: E402
from pallas_lsp.confirm.jobs import Answer, Job  # noqa: E402
from pallas_lsp.confirm.settings import ConfirmSettings  # noqa: E402
from pallas_lsp.confirm.verdicts import Store  # noqa: E402
from pallas_lsp.confirm.wording import figures  # noqa: E402
from pallas_lsp.engine import Engine, Settings  # noqa: E402
from pallas_lsp.engine.codec import _converter  # noqa: E402
from pallas_lsp.model import Document, Report, Snapshot  # noqa: E402

CASES = PROJECT / "tests" / "confirm" / "cases"

BARE = """
import importlib.util, json, sys, time
import jax
spec = importlib.util.spec_from_file_location("case", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
function, arguments = module.bare()
times = []
for _ in range(int(sys.argv[2])):
    jax.clear_caches()
    began = time.perf_counter()
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",))
    lowered_at = time.perf_counter()
    lowered.compile()
    times.append((lowered_at - began, time.perf_counter() - lowered_at))
print(json.dumps(times))
"""

SUBJECTS = {
    "hopper_matmul": """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

M, N, K, TM, TN, TK = 1024, 1024, 512, 128, 128, 64
T = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def matmul(a_gmem, b_gmem, o_gmem, o_smem):
    mi, ni = jax.lax.axis_index("m"), jax.lax.axis_index("n")

    def accumulate(acc):
        def step(_, a_smem, b_smem):
            plgpu.wgmma(acc, a_smem, b_smem)
            plgpu.wgmma_wait(1)

        plgpu.emit_pipeline(
            step,
            grid=(K // TK,),
            in_specs=[
                plgpu.BlockSpec((TM, TK), lambda k: (mi, k), transforms=T, delay_release=1),
                plgpu.BlockSpec((TK, TN), lambda k: (k, ni), transforms=T, delay_release=1),
            ],
            max_concurrent_steps=4,
        )(a_gmem, b_gmem)
        return acc[...]

    acc = pl.run_scoped(accumulate, plgpu.ACC((TM, TN), jnp.float32))
    o_smem[...] = (acc * CONSTANT).astype(jnp.bfloat16)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[pl.ds(mi * TM, TM), pl.ds(ni * TN, TN)])
    plgpu.wait_smem_to_gmem(0)


def run(a, b):
    return plgpu.kernel(
        matmul,
        out_type=jax.ShapeDtypeStruct((M, N), jnp.bfloat16),
        scratch_types=[plgpu.SMEM((TM, TN), jnp.bfloat16, transforms=T)],
        grid=(M // TM, N // TN),
        grid_names=("m", "n"),
    )(a, b)


def bare():
    return run, [jax.ShapeDtypeStruct((M, K), jnp.bfloat16), jax.ShapeDtypeStruct((K, N), jnp.bfloat16)]


if __name__ == "__main__":
    run(jnp.zeros((M, K), jnp.bfloat16), jnp.zeros((K, N), jnp.bfloat16))
""",
    "hopper_elementwise": """\
import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * CONSTANT


def run(x):
    return plgpu.kernel(double, out_type=jax.ShapeDtypeStruct((128,), jnp.float32))(x)


def bare():
    return run, [jax.ShapeDtypeStruct((128,), jnp.float32)]


if __name__ == "__main__":
    run(jnp.zeros((128,), jnp.float32))
""",
    "triton_softmax": """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def softmax(x_ref, o_ref):
    x = x_ref[...]
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    o_ref[...] = e / jnp.sum(e, axis=-1, keepdims=True) * CONSTANT


def run(x):
    return pl.pallas_call(
        softmax,
        out_shape=jax.ShapeDtypeStruct((512, 1024), jnp.float32),
        grid=(512,),
        in_specs=[pl.BlockSpec((1, 1024), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, 1024), lambda i: (i, 0)),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def bare():
    return run, [jax.ShapeDtypeStruct((512, 1024), jnp.float32)]


if __name__ == "__main__":
    run(jnp.zeros((512, 1024), jnp.float32))
""",
}
"""Kernels of usual sizes; ``CONSTANT`` makes each run's program another."""


class Nothing(Store):
    """A store that keeps nothing, so that each confirmation is a real one."""

    def get(self, key: str) -> dict[str, Any] | None:  # noqa: ARG002
        return None

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        pass


class Check:
    def __init__(self, out: Path, python: str, deadline: float) -> None:
        self.out = out
        self.python = python
        self.deadline = deadline
        self.log: list[str] = []

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def write(self, name: str, content: Any) -> None:
        text = content if isinstance(content, str) else json.dumps(content, indent=1, default=str)
        (self.out / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}, {self.left():.0f} s left", flush=True)

    def engine(self, settings: ConfirmSettings, store: Store | None = None, **more: Any) -> Engine:
        base = Settings(python=self.python, figures=True, confirm=settings, discovery=False, **more)
        engine = Engine(base, self.log.append)
        folder = Path(tempfile.mkdtemp(prefix="pallas-lsp-store-"))
        engine._confirmations = Confirmations(settings, base, self.log.append, store or Store(folder))
        return engine


# -- the machine ------------------------------------------------------------------------------------------------------


def machine(check: Check) -> None:
    found = gpus.find()
    ask = (
        f"import json, shutil, sys; sys.path.insert(0, {str(PROJECT)!r})\n"
        "import jax, pallas_lsp.worker.ptxas as p\n"
        "print(json.dumps({'jax': jax.__version__, 'ptxas': p.find_ptxas(), 'nvdisasm': shutil.which('nvdisasm')}))"
    )
    said = subprocess.run([check.python, "-c", ask], capture_output=True, text=True, check=False)
    smi = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=False).stdout if found.gpus else ""
    check.write(
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


# -- the tests --------------------------------------------------------------------------------------------------------


def tests(check: Check, seconds: float) -> None:
    environment = {**os.environ, "PALLAS_LSP_TEST_PYTHONS": check.python}
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
    check.write("tests.txt", text)


def _decoded(data: Any) -> str:
    return data.decode(errors="replace") if isinstance(data, bytes) else str(data or "")


# -- faults that only a device shows ----------------------------------------------------------------------------------


async def cases(check: Check, seconds: float) -> None:
    """Each case with a launch; what jax says is kept whole."""
    from pallas_lsp.confirm import confirmation

    faults: list[Any] = []
    real = confirmation.judge

    def judge(found: Any, context: Any) -> Any:
        faults[:] = list(found)
        return real(faults, context)

    confirmation.judge = judge  # type: ignore[assignment]
    settings = ConfirmSettings(launch=True, seconds=45, launch_seconds=8, patience=20, warm=False)
    results = []
    end = time.monotonic() + seconds
    try:
        for targets in ({"mosaic_gpu": ("9.0", "10.0")}, {"mosaic_gpu": ("9.0",)}):
            engine = check.engine(settings, targets=targets)
            for path in sorted(CASES.glob("*.py")):
                if time.monotonic() > end or (len(targets["mosaic_gpu"]) == 1 and "tensor" not in path.name):
                    continue
                faults.clear()
                result = await _one(engine, path)
                result["faults"] = [_converter().unstructure(fault) for fault in faults]
                result["targets"] = targets
                results.append(result)
                print(result["case"], result["verdicts"], result["states"], flush=True)
            await engine.aclose()
    finally:
        confirmation.judge = real
        check.write("faults.json", results)


async def _one(engine: Engine, path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    snapshot = Snapshot({str(path): Document(str(path), text)}, (str(path.parent),))
    began = time.perf_counter()
    report = await engine.check(snapshot, str(path))
    checked = time.perf_counter()
    confirmation = await engine.confirm(snapshot, str(path), report)
    done = time.perf_counter()
    return {
        "case": f"{path.parent.name}/{path.stem}",
        "problems": [problem.message for problem in report.problems],
        "unreached": [status.reason for status in report.launches if status.reason],
        "cpu": _findings(report),
        "gpu": _findings(confirmation.report),
        "verdicts": _verdicts(confirmation.report),
        "states": _states(confirmation.report),
        "figures": [
            line
            for status in confirmation.report.launches
            for capture in status.captures
            for line in figures(capture)
            if capture.resources.get("devices")
        ],
        "devices": [
            device
            for status in confirmation.report.launches
            for capture in status.captures
            for device in capture.resources.get("devices", ())
        ],
        "state": confirmation.state,
        "check_seconds": round(checked - began, 3),
        "confirm_seconds": round(done - checked, 3),
    }


def _findings(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "rule": finding.rule,
            "line": finding.location.range.start.line + 1,
            "stage": finding.stage.value,
            "severity": finding.severity.value,
            "message": finding.message,
            "verdicts": [each["verdict"] for each in finding.data.get("verdicts", ())],
        }
        for finding in report.findings
    ]


def _verdicts(report: Report) -> list[str]:
    return [
        f"{finding.rule}: {', '.join(v['verdict'] for v in finding.data.get('verdicts', ())) or 'none'}"
        for finding in report.findings
    ]


def _states(report: Report) -> list[str]:
    return [
        f"{capture.body.name if capture.body else capture.api}: {device['state']}"
        for status in report.launches
        for capture in status.captures
        for device in capture.resources.get("devices", ())
    ]


# -- the ratio --------------------------------------------------------------------------------------------------------


async def ratio(check: Check, seconds: float) -> None:
    end = time.monotonic() + seconds
    results: dict[str, Any] = {}
    for name, source in SUBJECTS.items():
        results[name] = {"bare": _bare(check, source)}
    modes: dict[str, ConfirmSettings] = {
        "warm": ConfirmSettings(),
        "fork": ConfirmSettings(warm=False),
    }
    for mode, settings in modes.items():
        engine = check.engine(settings, Nothing())
        for name, source in SUBJECTS.items():
            if time.monotonic() > end:
                break
            times, devices = [], []
            for number in range(4):
                path = Path(tempfile.mkdtemp()) / f"{name}.py"
                path.write_text(source.replace("CONSTANT", f"{number + 2}.5"))
                result = await _one(engine, path)
                times.append(result["confirm_seconds"])
                devices = result["devices"] or [result["state"], result["gpu"]]
                if settings.warm:
                    await asyncio.sleep(6)  # until the next process is ready, as between two edits
            hot = results[name]["bare"].get("median")
            middle = statistics.median(times[1:])
            results[name][mode] = {
                "seconds": times,
                "median": middle,
                "ratio": round(middle / hot, 2) if hot else None,
                "device": devices,
            }
            print(name, mode, times, results[name][mode]["ratio"], flush=True)
        await engine.aclose()
        check.write("ratio.json", results)


def _bare(check: Check, source: str) -> dict[str, Any]:
    """Lower and compile again and again in one process that does nothing else."""
    folder = Path(tempfile.mkdtemp())
    (folder / "case.py").write_text(source.replace("CONSTANT", "1.5"))
    (folder / "bare.py").write_text(BARE)
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": "cuda,cpu"}
    command = [check.python, str(folder / "bare.py"), str(folder / "case.py"), "6"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    if done.returncode != 0:
        return {"error": done.stderr[-2000:]}
    times = json.loads(done.stdout.splitlines()[-1])
    return {"times": times, "median": round(statistics.median(sum(pair) for pair in times[2:]), 4)}


# -- the corpus -------------------------------------------------------------------------------------------------------


async def corpus(check: Check, folder: Path, jobs: int) -> None:
    files = [path for path in sorted(folder.glob("*/*.py")) if _for_gpu(path)]
    engine = check.engine(ConfirmSettings(seconds=30, patience=120, warm=False), jobs=jobs)
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
            if check.left() < 45:
                return
            try:
                results[str(path)] = await _one(engine, path)
            except Exception:
                results[str(path)] = {"case": f"{path.parent.name}/{path.stem}", "error": traceback.format_exc()}

    await asyncio.gather(*(one(path) for path in files))
    await engine.aclose()
    Confirmer._run = real  # type: ignore[method-assign]
    for path, result in results.items():
        result["gpu_seconds"] = on_gpu.get(path)
    ordered = [results[str(path)] for path in files if str(path) in results]
    missing = [f"{path.parent.name}/{path.stem}" for path in files if str(path) not in results]
    check.write("corpus.json", {"results": ordered, "not run": missing})


def _for_gpu(path: Path) -> bool:
    try:
        case = json.loads((path.parent / "case.json").read_text())
    except (OSError, ValueError):
        return True
    return case.get("backend") != "tpu"


# ---------------------------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, help="a folder of cases: NAME/*.py with a case.json each")
    parser.add_argument("--python", default=sys.executable, help="the Python with jax (default: this one)")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--only", default="machine,ratio,cases,corpus,tests")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.corpus is not None:
        arguments.corpus = arguments.corpus.resolve()
    check = Check(arguments.out, arguments.python, time.monotonic() + 60 * arguments.minutes)
    parts = arguments.only.split(",")
    share = 60 * arguments.minutes
    steps: dict[str, Callable[[], Any]] = {
        "machine": lambda: machine(check),
        "ratio": lambda: asyncio.run(ratio(check, 0.28 * share)),
        "cases": lambda: asyncio.run(cases(check, 0.2 * share)),
        "corpus": lambda: asyncio.run(corpus(check, arguments.corpus, arguments.jobs)) if arguments.corpus else None,
        "tests": lambda: tests(check, max(check.left() - 10, 20)),
    }
    for part in parts:
        if check.left() < 20:
            print(f"no time left for {part}")
            continue
        try:
            steps[part]()
        except Exception:
            traceback.print_exc()
            check.write(f"{part}-failed.txt", traceback.format_exc())
    check.write("log.txt", "\n".join(check.log)[-400_000:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
