"""What ``pallas-lsp check FOLDER`` costs for each kernel of many files, against the same work bare in a hot process.

    .venvs/dev/bin/python benchmarks/many.py --python .venvs/jax-0.12.0.1/bin/python [--write] [--json FILE]

See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from editor import Bare, machine
from page import write
from subjects import ONE, SUBJECTS, Subject

KINDS = ("wgmma", "pipelined_matmul", ONE)


def variations(subjects: Iterable[Subject], count: int) -> Iterator[tuple[Subject, str, str]]:
    """``count`` files, no two with the same kernel: (subject, name, text)."""
    subjects = list(subjects)
    for number in range(count):
        subject = subjects[number % len(subjects)]
        text = subject.files[subject.main].replace(subject.value, f"{subject.value} * {number + 2}.25")
        yield subject, f"{number:02}_{subject.main}", text


def _fill(folder: Path, files: Iterable[tuple[Subject, str, str]]) -> None:
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    for subject, name, text in files:
        for helper in subject.files.keys() - {subject.main}:
            (folder / helper).write_text(subject.files[helper], encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")


def _check(python: str, folder: Path, *more: str) -> float:
    """Seconds that the command takes; each file must be found to be correct."""
    command = [sys.executable, "-m", "pallas_lsp", "check", str(folder), "--python", python, "--format", "json", *more]
    state = str(folder.with_name(f"{folder.name}-state"))
    environment = {**os.environ, "XDG_CACHE_HOME": state, "XDG_STATE_HOME": state}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return seconds


def measure(python: str, count: int, jobs: list[int | None]) -> dict[str, Any]:
    files = list(variations((SUBJECTS[name](python) for name in KINDS), count))
    bare = Bare(python)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve()
        requests = [s.request({**s.files, s.main: text}, root) for s, _, text in [*files[: len(KINDS)], *files]]
        seconds = [bare.measure(request)["seconds"] for request in requests][len(KINDS) :]  # those before warm it up
        bare.close()
        _fill(root / "one", files[:1])
        start = min(_check(python, root / "one") for _ in range(2))
        runs = []
        for number, each in enumerate(jobs):
            _fill(root / f"many{number}", files)
            total = _check(python, root / f"many{number}", *(() if each is None else ("--jobs", str(each))))
            runs.append({"jobs": each, "seconds": total, "for_each": (total - start) / (count - 1)})
    return {
        "files": count, "jax": bare.jax, "machine": machine(), "start_and_one": start, "runs": runs,
        "bare": sum(seconds) / count,
    }  # fmt: skip


def markdown(figures: dict[str, Any]) -> str:
    lines = [
        f"{figures['files']} files, jax {figures['jax']}, {figures['machine']['cpus']} cores. One file alone takes "
        f"{figures['start_and_one']:.1f} s, most of it for the import of jax; bare, a kernel takes "
        f"{1000 * figures['bare']:.0f} ms.",
        "",
        "| jobs | all files | each further file | to bare |",
        "|---|---|---|---|",
    ]
    for run in figures["runs"]:
        jobs = "not said" if run["jobs"] is None else str(run["jobs"])
        ratio = run["for_each"] / figures["bare"]
        lines.append(f"| {jobs} | {run['seconds']:.1f} s | {1000 * run['for_each']:.0f} ms | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the interpreter that has jax")
    parser.add_argument("--files", type=int, default=20, help="files with a kernel each (default: 20)")
    parser.add_argument("--jobs", type=int, action="append", help="files at once; may be repeated (default: 1 and all)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args()
    python = os.path.abspath(options.python)  # noqa: PTH100  # a virtual environment's link must stay
    figures = measure(python, options.files, options.jobs or [1, None])
    table = markdown(figures)
    print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if options.write:
        write("many", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
