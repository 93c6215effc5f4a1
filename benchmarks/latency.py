"""How long after an edit its diagnostics are there, against what jax alone needs for the same kernel.

    .venvs/dev/bin/python benchmarks/latency.py --python .venvs/jax-0.12.0.1/bin/python

A real ``pallas-lsp serve`` is driven over stdio.  In the same run, interleaved with it edit by edit, a process that is
hot traces and lowers the same texts (``bare.py``); the figures of interest are the ratios.  See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from editor import Bare, Editor, machine, percentile
from kernels import KERNELS, Kernel


@dataclass
class Result:
    kernel: str
    driver: str
    open_seconds: float = 0.0
    edits: list[float] = field(default_factory=list)
    typed: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        def of(values: list[float]) -> dict[str, float]:
            return {"median_ms": 1000 * statistics.median(values), "p95_ms": 1000 * percentile(values, 95)}

        bare = statistics.median(self.bare)
        ratios = [edit / alone for edit, alone in zip(self.edits, self.bare, strict=True)]
        return {
            "kernel": self.kernel,
            "driver": self.driver,
            "open_ms": 1000 * self.open_seconds,
            "edit": of(self.edits),
            "typing": of(self.typed),
            "bare": of(self.bare),
            "edit_to_bare": {"median": statistics.median(ratios), "p95": percentile(ratios, 95)},
            "open_to_bare": self.open_seconds / bare,
            "edits": len(self.edits),
        }


async def measure(kernel: Kernel, options: argparse.Namespace, bare: Bare) -> Result:
    result = Result(kernel.name, kernel.driver)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "workspace" / kernel.path.name
        path.parent.mkdir()
        original = kernel.text
        path.write_text(original, encoding="utf-8")
        if kernel.driver == "test":
            path.with_name(f"test_{path.name}").write_text(kernel.test, encoding="utf-8")
            path.with_name("pyproject.toml").touch()  # a folder without one is no workspace, and is not searched
        editor, uri = Editor(), path.as_uri()
        start = time.perf_counter()
        await editor.start(path.parent, options.python)
        try:
            editor.open(uri, original)
            result.open_seconds = await editor.shows(uri, 0, errors=False) - start
            bare.measure(kernel.request(original))
            version = 0
            edits = list(kernel.edits(options.warm_up + options.edits))
            for n, (text, faulty) in enumerate(edits):
                await asyncio.sleep(options.pause)
                version += 1
                start = time.perf_counter()
                editor.change(uri, version, text)
                seconds = await editor.shows(uri, version, faulty) - start
                alone = await asyncio.to_thread(bare.measure, kernel.request(text))
                if (alone["error"] is not None) != faulty:
                    raise SystemExit(f"{kernel.name}: jax itself says {alone} of edit {n}, which is faulty: {faulty}")
                if n >= options.warm_up:
                    result.edits.append(seconds)
                    result.bare.append(alone["seconds"])
            for text, faulty in list(kernel.edits(2 * options.bursts + 1))[1:]:
                await asyncio.sleep(options.pause)
                for keystroke in range(8):
                    version += 1
                    start = time.perf_counter()
                    editor.change(uri, version, text + "#" * keystroke)
                    await asyncio.sleep(0.08)
                result.typed.append(await editor.shows(uri, version, faulty) - start)
        finally:
            await editor.stop()
    return result


def table(results: list[Result], bare: Bare) -> str:
    columns = ("kernel, driver", "edit", "edit p95", "bare", "edit/bare", "p95", "typing", "open")
    lines = ["".join(f"{column:>{20 if n == 0 else 11}}" for n, column in enumerate(columns))]
    for each in (result.summary() for result in results):
        edit, alone, ratio = each["edit"], each["bare"], each["edit_to_bare"]
        times = [edit["median_ms"], edit["p95_ms"], alone["median_ms"], each["typing"]["median_ms"], each["open_ms"]]
        cells = [f"{milliseconds:.0f} ms" for milliseconds in times]
        cells[3:3] = [f"{ratio['median']:.2f}", f"{ratio['p95']:.2f}"]
        name = f"{each['kernel']}, {each['driver']}"
        lines += [f"{name:>20}" + "".join(f"{cell:>11}" for cell in cells)]
    lines.append(f"jax {bare.jax}; importing it alone took {1000 * bare.import_seconds:.0f} ms. Medians unless said.")
    return "\n".join(lines)


async def run(options: argparse.Namespace) -> int:
    bare = Bare(options.python)
    try:
        chosen = [
            each for each in KERNELS if options.kernel in (None, each.name) and options.driver in (None, each.driver)
        ]
        results = [await measure(kernel, options, bare) for kernel in chosen]
    finally:
        bare.close()
    print(table(results, bare))
    if options.json:
        document = {
            "jax": bare.jax,
            "machine": machine(),
            "import_ms": 1000 * bare.import_seconds,
            "results": [result.summary() for result in results],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the interpreter that has jax")
    parser.add_argument("--kernel", choices=sorted({kernel.name for kernel in KERNELS}), help="measure this one only")
    parser.add_argument(
        "--driver", choices=("own", "test"), help="measure kernels with this driver only (see kernels.py)"
    )
    parser.add_argument("--edits", type=int, default=20, help="edits that count (default: 20)")
    parser.add_argument("--warm-up", type=int, default=2, help="edits before them that do not (default: 2)")
    parser.add_argument("--bursts", type=int, default=5, help="bursts of typing (default: 5)")
    parser.add_argument("--pause", type=float, default=1.2, help="seconds between edits (default: 1.2)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    options.python = os.path.abspath(options.python)  # noqa: PTH100  # a virtual environment's link must stay
    return asyncio.run(run(options))


if __name__ == "__main__":
    sys.exit(main())
