"""Fixes under random formatting, renaming, comments, aliases and nesting.

Whatever a faulty file looks like: what is found stays the same, and a fix that is marked verified parses, removes its
finding, adds none that it did not uncover, and has nothing more to change afterwards.

Each kernel is changed and checked once, and again while its share of the time lasts, on the newest tested jax.  The
n-th change of a kernel depends on the seed alone, so that a failure comes again: it names the seed and the change.

``PALLAS_LSP_FUZZ_SECONDS``: the time for all kernels.  ``PALLAS_LSP_FUZZ_SEED``: other changes.
``PALLAS_LSP_FUZZ_ROUND``: this change alone, of each kernel that ``-k`` chooses.
"""

from __future__ import annotations

import ast
import asyncio
import difflib
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from jax_environments import JaxPython
from mutations import MUTATIONS, mutate

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.engine.verify import attempt, edited_snapshot
from pallas_lsp.model import Document, Finding, Fix, Report, Snapshot

HERE = Path(__file__).parent
FILES = [*sorted((HERE / "kernels").glob("*.py")), *sorted((HERE.parent.parent / "examples").glob("faulty_*.py"))]
SECONDS = float(os.environ.get("PALLAS_LSP_FUZZ_SECONDS", "60"))
SEED = os.environ.get("PALLAS_LSP_FUZZ_SEED", "1")
ROUND = os.environ.get("PALLAS_LSP_FUZZ_ROUND")
PATH = "/fuzz/kernels.py"


class Bench:
    """An engine and the event loop that it lives in."""

    def __init__(self, python: str) -> None:
        self.runner = asyncio.Runner()
        self.engine = self.runner.run(self._engine(python))
        self.tried: Counter[str] = Counter()

    @staticmethod
    async def _engine(python: str) -> Engine:
        return Engine(Settings(python=python, jobs=2, guess=False, discovery=False))

    def check(self, text: str) -> tuple[Snapshot, Report]:
        snapshot = Snapshot({PATH: Document(PATH, text, 1)}, ("/fuzz",))
        report = self.runner.run(self.engine.check(snapshot, PATH))
        assert [problem.message for problem in report.problems] == []
        return snapshot, report

    def close(self) -> None:
        self.runner.run(self.engine.aclose())
        self.runner.close()


@pytest.fixture(scope="module")
def bench(newest_jax_python: JaxPython) -> Iterator[Bench]:
    bench = Bench(newest_jax_python.python)
    yield bench
    bench.close()
    print(f"\nfixes: {dict(bench.tried)}")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_verified_fixes_hold(bench: Bench, file: Path) -> None:
    plain = file.read_text(encoding="utf-8")
    until = time.monotonic() + SECONDS / len(FILES)
    expected = rules(bench.check(plain)[1])
    assert expected, "nothing is found in the kernel as it is"
    number = int(ROUND or 0)
    while True:
        holds(bench, file, plain, number, expected)
        number += 1
        if ROUND is not None or time.monotonic() > until:
            return


def holds(bench: Bench, file: Path, plain: str, number: int, expected: Counter[str]) -> None:
    """One change of a kernel, with all its fixes."""
    text = changed(file, plain, number)
    try:
        snapshot, report = bench.check(text)
        assert rules(report) == expected, "the change of the text changed what is found"
        for finding in report.findings:
            for fix in finding.fixes:
                tried = bench.runner.run(attempt(bench.engine, snapshot, PATH, finding, fix, report))
                bench.tried["verified" if tried.fix.verified else "refused"] += 1
                if tried.fix.verified:
                    fix_holds(bench, snapshot, report, finding, fix, tried.uncovered)
    except Exception as error:
        error.add_note(f"PALLAS_LSP_FUZZ_SEED={SEED} PALLAS_LSP_FUZZ_ROUND={number}, the kernel:\n{text}")
        raise


def changed(file: Path, plain: str, number: int) -> str:
    source = random.Random(f"{SEED} {file.stem} {number}")
    return mutate(plain, source.randrange(1, 1 << len(MUTATIONS)), source.randrange(1 << 30))


def fix_holds(
    bench: Bench, snapshot: Snapshot, before: Report, finding: Finding, fix: Fix, uncovered: tuple[Finding, ...]
) -> None:
    """Checked here without what verification itself found out, but for which faults were hidden."""
    text, fixed = snapshot.documents[PATH].text, edited_snapshot(snapshot, fix.edits).documents[PATH].text
    try:
        ast.parse(fixed)
        assert fixed != text, "the fix changes nothing"
        _, after = bench.check(fixed)
        others = rules(before) - Counter([finding.rule])
        hidden = Counter(each.rule for each in uncovered)
        assert rules(after) <= others + hidden, f"added {rules(after) - others - hidden}"
        if not others[finding.rule] and not hidden[finding.rule]:
            again = [each.title for other in after.findings if other.rule == finding.rule for each in other.fixes]
            assert fix.title not in again, "the fix is offered again"
    except Exception as error:
        diff = "\n".join(difflib.unified_diff(text.splitlines(), fixed.splitlines(), lineterm="", n=0))
        error.add_note(f"{finding.rule}: {fix.title}\n{diff}")
        raise


def rules(report: Report) -> Counter[str]:
    return Counter(finding.rule for finding in report.findings)
