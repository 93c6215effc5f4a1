"""The page of a run on a GPU, from what ``gpu_check.py`` wrote.

python3 scripts/gpu_report.py OUT docs/gpu-runs.md [--date 2026-12-01]
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]

_HOW = """\
Each case was checked without a GPU, and then by a confirmation: the same drivers run in a process with the GPU, each
kernel that they reach is lowered for it and compiled by it. Nothing was launched. What the verdicts say:

- **confirmed**: the GPU's run shows the same fault on the same line. A fault of building or tracing comes before any
  compiler: it is reproduced by tracing again in the process with the GPU, and there is nothing to compile. A fault of
  lowering is reproduced by lowering for the attached GPU.
- **not reproduced**: the kernel lowers and compiles on the GPU. For a fault that jax does not raise (a missing wait, a
  block outside of its array) that is no contradiction: only a launch could show it.
- **device only**: the GPU's compiler or a launch found what nothing found before.
- **no GPU**: the kernel is for another kind of GPU than the one at hand.
"""
_EXPLAINED = {
    "not reproduced": "jax accepts the program with and without a GPU; what is wrong shows when it runs.",
    "no GPU": "it needs another kind of GPU (compute capability 10.0, tensor memory), which was not there.",
    "timed out": "the GPU's compiler did not end within its time limit.",
    "device only": "found by the GPU's compiler alone.",
}


def page(folder: Path, date: str) -> str:
    machine, ratio, faults, corpus = (
        _load(folder / f"{name}.json") for name in ("machine", "ratio", "faults", "corpus")
    )
    parts = [f"# Runs on a GPU\n\n{_machine(machine, date)}"]
    parts.append(f"## Tests\n\n{_tests(folder / 'tests.txt')}")
    parts.append(f"## Time of a confirmation\n\n{_ratios(ratio)}")
    parts.append(f"## Faults that only a device shows\n\n{_device_faults(faults)}")
    results = (corpus or {}).get("results", [])
    parts.append(f"## Cases\n\n{_HOW}\n{_summary(results)}\n\n{_table(results)}")
    parts.append(f"## Where GPU and CPU differ\n\n{_differences(results)}")
    parts.append(f"## Figures of correct kernels\n\n{_figures(results)}")
    missing = (corpus or {}).get("not run", [])
    if missing:
        parts.append("## Not run\n\n" + ", ".join(missing))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _machine(machine: Any, date: str) -> str:
    gpu = machine["gpus"][0]
    driver = next((m[1] for line in machine["nvidia-smi"] if (m := re.search(r"Driver Version: ([\d.]+)", line))), "?")
    cuda = next((m[1] for line in machine["nvidia-smi"] if (m := re.search(r"CUDA Version: ([\d.]+)", line))), "?")
    jax = machine["worker"]["jax"] if isinstance(machine["worker"], dict) else "?"
    return (
        f"{date}: {gpu['name']} (compute capability {gpu['compute_capability']}), driver {driver}, CUDA {cuda}, "
        f"jax {jax}, {machine['cpus']} processor cores. `scripts/gpu_check.py` makes such a run, "
        "`scripts/gpu_report.py` this page of it."
    )


def _tests(path: Path) -> str:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = re.findall(r"::(test_\w+) (PASSED|FAILED|SKIPPED|ERROR)", text)
    ends = re.findall(r"=+ (.* in [\d.]+s.*?) =+", text)
    return "\n".join([f"`tests/confirm/test_gpu.py`: {ends[-1] if ends else 'not run'}.", "", *_bullets(lines)])


def _bullets(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, outcome in lines:
        yield f"- {name.removeprefix('test_').replace('_', ' ')}: {outcome.lower()}"


def _ratios(ratio: Any) -> str:
    modes = [mode for mode in next(iter(ratio.values())) if mode != "bare"] if ratio else []
    rows = [
        "The bare time is that of lowering and compiling the same kernel again and again in a hot process that does",
        "nothing else (median); a confirmation starts from the file: it runs the drivers, traces, lowers, compiles and",
        "reads the compiler's reports. `warm`: a process with a started GPU is ready, as between two edits; `fork`:",
        "the GPU is started for the job. Each kernel is a new program each time.",
        "",
        "| kernel | bare | " + " | ".join(modes) + " |",
        "|---|---|" + "---|" * len(modes),
    ]
    for kernel, each in (ratio or {}).items():
        cells = [f"{each[m]['median']:.2f} s ({each[m]['ratio']} times)" if m in each else "not run" for m in modes]
        rows.append(f"| {kernel} | {each['bare'].get('median', 0):.2f} s | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _device_faults(faults: Any) -> str:
    rows = ["Each kernel was launched once. `targets` are the kinds of GPU that the kernels were said to be for.", ""]
    rows += ["| kernel | targets | without a GPU | on the GPU | outcome |", "|---|---|---|---|---|"]
    for each in faults or ():
        targets = ", ".join(kind for kinds in each["targets"].values() for kind in kinds)
        cpu = "; ".join(f"{f['rule']} ({f['line']})" for f in each["cpu"]) or "none"
        gpu = (
            "; ".join(f"{f['rule']} ({f['line']}): {', '.join(f['verdicts']) or 'none'}" for f in each["gpu"]) or "none"
        )
        states = ", ".join(state.partition(": ")[2] for state in each["states"])
        rows.append(f"| {each['case'].removeprefix('cases/')} | {targets} | {cpu} | {gpu} | {states} |")
    return "\n".join(rows)


def _summary(results: list[Case]) -> str:
    verdicts = Counter(v for r in results for f in r.get("gpu", ()) for v in f["verdicts"] or ["no verdict"])
    correct = [r for r in results if not r.get("cpu") and "error" not in r]
    compiled = [r for r in correct if any(state.endswith(": compiled") for state in r["states"])]
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    return (
        f"{len(results)} files. Findings: {counted}. Of {len(correct)} files without a finding {len(compiled)} were "
        "compiled without one."
    )


def _table(results: list[Case]) -> str:
    rows = ["| case | finding without a GPU (line, stage) | verdict | kernel on the GPU | check | confirmation |"]
    rows.append("|---|---|---|---|---|---|")
    for each in results:
        if "error" in each:
            rows.append(f"| {each['case']} | error: {each['error'].splitlines()[-1]} | | | | |")
            continue
        cpu = "; ".join(f"{f['rule']} ({f['line']}, {f['stage']})" for f in each["cpu"]) or "none"
        verdict = "; ".join(", ".join(f["verdicts"]) or "none" for f in each["gpu"]) or "none needed"
        states = "; ".join([*each["states"], *([each["state"]] if each["state"] else [])]) or "not reached"
        seconds = each.get("gpu_seconds") or each["confirm_seconds"]
        rows.append(
            f"| {each['case']} | {cpu} | {verdict} | {states} | {each['check_seconds']:.2f} s | {seconds:.2f} s |"
        )
    return "\n".join(rows)


def _differences(results: list[Case]) -> str:
    rows = []
    for each in results:
        for found in each.get("gpu", ()):
            for verdict in found["verdicts"] or ["no verdict"]:
                if verdict == "confirmed":
                    continue
                why = _EXPLAINED.get(verdict, "the kernel was neither compiled nor refused.")
                if found["stage"] == "read":
                    why = "it was found by reading the text, before anything runs; jax raises at the line named first."
                rows.append(f"- {each['case']}, {found['rule']} (line {found['line']}): {verdict}; {why}")
        if not each.get("cpu") and any("failed" in state for state in each.get("states", ())):
            rows.append(f"- {each['case']}: correct without a GPU, refused by it.")
        other = [f.partition(": ")[2] for f in each.get("figures", ()) if "not compiled" in f]
        if not each.get("cpu") and other:
            rows.append(f"- {each['case']}: {', '.join(other)}.")
        elif not each.get("cpu") and not each.get("states") and "error" not in each:
            reason = each.get("state") or "; ".join(each.get("unreached", ())) or "it launches no kernel for a GPU"
            rows.append(f"- {each['case']}: nothing was compiled: {reason}.")
    return "\n".join(rows) or "Nowhere."


def _figures(results: list[Case]) -> str:
    rows = [
        f"- {each['case']}: {line.partition(': ')[2]}"
        for each in results
        if not each.get("cpu")
        for line in each.get("figures", ())
        if " threads" in line
    ]
    return "\n".join(rows) + "\n\nOf Triton kernels XLA tells threads and shared memory, no registers."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--date", default=datetime.datetime.now(tz=datetime.UTC).date().isoformat())
    arguments = parser.parse_args()
    arguments.page.write_text(page(arguments.out, arguments.date), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
