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
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from on_gpu.base import Run
from on_gpu.cases import cases, corpus
from on_gpu.machine import machine, tests
from on_gpu.ratio import ratio


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
    run = Run(arguments.out, arguments.python, time.monotonic() + 60 * arguments.minutes)
    parts = arguments.only.split(",")
    share = 60 * arguments.minutes
    steps: dict[str, Callable[[], Any]] = {
        "machine": lambda: machine(run),
        "ratio": lambda: asyncio.run(ratio(run, 0.28 * share)),
        "cases": lambda: asyncio.run(cases(run, 0.2 * share)),
        "corpus": lambda: asyncio.run(corpus(run, arguments.corpus, arguments.jobs)) if arguments.corpus else None,
        "tests": lambda: tests(run, max(run.left() - 10, 20)),
    }
    for part in parts:
        if run.left() < 20:
            print(f"no time left for {part}")
            continue
        try:
            steps[part]()
        except Exception:
            traceback.print_exc()
            run.write(f"{part}-failed.txt", traceback.format_exc())
    run.write("log.txt", "\n".join(run.log)[-400_000:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
