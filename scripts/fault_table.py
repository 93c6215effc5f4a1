"""Try every fault of the suite and write down what the user sees: ``python scripts/fault_table.py [-k EXPRESSION]``.

Runs tests/faultsuite with the environments of ``scripts/run_tests.py`` and writes docs/faults.md.  The limits are the
suite's own, a second for an answer and two for a recovery, so let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
SUITE = PROJECT / "tests" / "faultsuite"
sys.path[:0] = [str(SUITE), str(SUITE.parent)]

from jax_environments import HINT, find_jax_pythons  # noqa: E402
from suite import ANSWER_SECONDS, RECOVERY_SECONDS, RESULTS, SLACK, Faults, slack  # noqa: E402

PAGE = PROJECT / "docs" / "faults.md"
MODULES = (
    "of_user_code",
    "of_interpreters",
    "of_the_protocol",
    "of_files",
    "of_workspaces",
    "of_disks",
    "of_the_end",
)
_HEAD = """\
# What goes wrong, and what the user sees then

Each fault below is brought about for a real `pallas-lsp serve`, by `tests/faultsuite/`, in every run of the tests. A
kernel is seen clean first; while the fault lasts, the server is asked for a hover or the lenses every 100 ms; what went
wrong must be told once, in plain words; and when the cause has ended, a known mistake in a kernel must be shown on its
line again, without a restart. Nothing that the code started may be left running.

The limits: {answer:g} s for every answer, {recovery:g} s to recover. Where other tests run on the same cores
(pytest-xdist) they are {beside:g} times that; `{slack}` sets the factor.

"What the user saw" names the place: `status` is the editor's status item (`pallas/status`), `message` a popup, `log`
the server's output in the editor. A dash: nothing is wrong for the user, and nothing was told; no answer was timed,
since nobody read it. "Recovered" counts from the end of the cause: the edit that takes it out, the package that is
installed, the file that is back; at the end of a session, until no process was left.

Made by `python scripts/fault_table.py` on {date}: {cores} cores, Python {python}, jax {jax}; other programs kept
{load:.1f} of the cores busy when it began, and the limits of that run were {factor:g} times those above.
"""
_COLUMNS = "| fault | what the user saw | slowest answer | recovered in |\n|---|---|---|---|\n"


def all_faults() -> list[Faults]:
    return [import_module(name).FAULTS for name in MODULES]


def measure(arguments: list[str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run the suite; pytest's exit status and the rows by name."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.jsonl")
        results.touch()
        # Not the test of this page, which is about to be written, and no tests beside one another.
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            "-k",
            "test_fault[",
        ]
        command += [str(SUITE), *arguments]
        run = subprocess.run(command, cwd=PROJECT, env={**os.environ, RESULTS: str(results)}, check=False)
        rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return run.returncode, {row["name"]: row for row in rows}


def page(rows: dict[str, dict[str, Any]], jax: str, load: float) -> str:
    named = {"answer": ANSWER_SECONDS, "recovery": RECOVERY_SECONDS, "beside": slack(beside=True), "slack": SLACK}
    python = ".".join(map(str, sys.version_info[:3]))
    where = {"cores": os.cpu_count(), "python": python, "jax": jax, "load": load, "factor": slack()}
    parts = [_HEAD.format(**named, **where, date=datetime.date.today())]
    for faults in all_faults():
        parts.append(f"\n## {faults.group}\n{_COLUMNS}")
        for fault in faults.every:
            row = rows.get(fault.name)
            parts.append(_row(fault.title, row) if row is not None else f"| {fault.title} | not measured | | |\n")
    return "".join(parts)


def _row(title: str, row: dict[str, Any]) -> str:
    place, _, text = row["saw"].partition(": ")
    saw = f"{place}: “{_cell(text)}”" if text else "–"
    slowest = "–" if row["slowest"] is None else f"{row['slowest'] * 1000:.0f} ms"
    return f"| {title} | {saw} | {slowest} | {row['recovery']:.1f} s |\n"


def _cell(text: str) -> str:
    """A text of several lines in a cell of a Markdown table."""
    return " / ".join(line.strip() for line in text.splitlines()).replace("|", "\\|").replace("<", "&lt;")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=PAGE, help="the page to write (default: docs/faults.md)")
    options, arguments = parser.parse_known_args()
    pythons = find_jax_pythons()
    if not pythons:
        sys.exit(HINT)
    load = os.getloadavg()[0]
    status, rows = measure(arguments)
    if status != 0:
        print(f"{options.output} was not written: the suite failed.", file=sys.stderr)
        return status
    options.output.write_text(page(rows, pythons[-1].version, load), encoding="utf-8")
    print(f"Wrote {options.output}: {len(rows)} faults.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
