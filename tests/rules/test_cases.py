"""Every rule on real kernels: the finding's exact range, and each fix with its diff, on every tested jax.

``cases/RULE/NAME.py`` is a kernel at fault; a comment of carets under a line marks the finding's range there.  What is
expected stands beside it in ``NAME.golden``, a section for each set of jax versions that agree.  After a wanted change:
``PALLAS_LSP_UPDATE_GOLDEN=1 pytest tests/rules/test_cases.py``, then read the diff.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jax_environments import JaxPython, find_jax_pythons

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.engine.verify import edited_snapshot, verify
from pallas_lsp.model import Finding, Fix, Location, Snapshot
from pallas_lsp.source.positions import Lines

CASES = Path(__file__).parent / "cases"
UPDATE = bool(os.environ.get("PALLAS_LSP_UPDATE_GOLDEN"))
_MARK = re.compile(r"^#\s*(\^+)\s*$")


def kernels() -> list[Path]:
    """The files with a marked range; others beside them are helpers that they import."""
    return [path for path in sorted(CASES.glob("*/*.py")) if marked(path.read_text(encoding="utf-8"))]


def marked(text: str) -> list[tuple[int, int, int]]:
    """The marked ranges: 0-based line, first and last column."""
    found = []
    for number, line in enumerate(text.split("\n")):
        match = _MARK.match(line)
        if match:
            found.append((number - 1, match.start(1), match.end(1)))
    return found


def shown(finding: Finding, path: Path, fixes: list[tuple[Fix, str]]) -> str:
    """A finding as the golden files have it."""
    parts = [finding.message]
    parts += [f"related: {_place(r.location, path)}: {r.message}" for r in finding.related]
    for fix, diff in fixes:
        state = "verified" if fix.verified else f"not verified: {fix.reason}"
        parts.append(f"\nfix: {fix.title} [{fix.safety}, {state}]\n{diff}".rstrip())
    return "\n".join(parts) + "\n"


def _place(location: Location, path: Path) -> str:
    file = "" if location.path == str(path) else f"{Path(location.path).name} "
    return f"{file}line {location.range.start.line + 1}"


def diff(snapshot: Snapshot, fix: Fix) -> str:
    edited = edited_snapshot(snapshot, fix.edits)
    lines = []
    for name in sorted({edit.path for edit in fix.edits}):
        old = Path(name).read_text(encoding="utf-8").splitlines()
        new = edited.documents[name].text.splitlines()
        changes = [line for line in difflib.unified_diff(old, new, n=0, lineterm="") if line[:3] not in ("---", "+++")]
        lines += [line for line in changes if not line.startswith("@@")]
    return "\n".join(lines)


class Bench:
    """An engine and the event loop that it lives in, for one interpreter."""

    def __init__(self, python: str) -> None:
        self.runner = asyncio.Runner()
        self.engine = self.runner.run(self._engine(python))
        self.results: dict[Path, tuple[list[Finding], str]] = {}

    @staticmethod
    async def _engine(python: str) -> Engine:
        return Engine(Settings(python=python, jobs=2))

    def check(self, path: Path) -> tuple[list[Finding], str]:
        """The findings of a file, and they and their tried fixes as the golden files have them."""
        if path not in self.results:
            self.results[path] = self.runner.run(self._check(path))
        return self.results[path]

    async def _check(self, path: Path) -> tuple[list[Finding], str]:
        engine, snapshot = self.engine, Snapshot({}, (str(path.parent),))
        report = await engine.check(snapshot, str(path))
        text = "\n".join(f"problem: {problem.message}" for problem in report.problems)
        for finding in report.findings:
            tried = [verify(engine, snapshot, str(path), finding, fix, report) for fix in finding.fixes]
            text += shown(finding, path, [(fix, diff(snapshot, fix)) for fix in await asyncio.gather(*tried)])
        return list(report.findings), text

    def close(self) -> None:
        self.runner.run(self.engine.aclose())
        self.runner.close()


_benches: dict[str, Bench] = {}


@pytest.fixture(scope="module", autouse=True)
def _close_benches() -> Iterator[None]:
    yield
    for bench in _benches.values():
        bench.close()
    _benches.clear()


def results(python: str, path: Path) -> tuple[list[Finding], str]:
    if python not in _benches:
        _benches[python] = Bench(python)
    return _benches[python].check(path)


def sections(text: str) -> dict[str, str]:
    """The expected text by jax version."""
    found = {}
    parts = re.split(r"^== (.*)\n", text, flags=re.MULTILINE)
    for versions, body in zip(parts[1::2], parts[2::2], strict=True):
        for version in versions.split():
            found[version] = body.strip() + "\n"
    return found


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", kernels(), ids=_name)
def test_the_finding_is_exact_and_its_fixes_are_as_expected(path: Path, jax_python: JaxPython) -> None:
    findings, text = results(jax_python.python, path)
    source = path.read_text(encoding="utf-8")
    assert [f.rule for f in findings] == [path.parent.name.replace("_", "-")], text
    start, end = findings[0].location.range.start, findings[0].location.range.end
    stop = end.character if end.line == start.line else len(Lines(source)[start.line])
    assert [(start.line, start.character, stop)] == marked(source), text
    golden = path.with_suffix(".golden")
    if UPDATE:
        _update(golden, path)
    assert text == sections(golden.read_text(encoding="utf-8")).get(jax_python.version), golden.name


def _update(golden: Path, path: Path) -> None:
    groups: dict[str, list[str]] = {}
    for each in find_jax_pythons():
        groups.setdefault(results(each.python, path)[1], []).append(each.version)
    golden.write_text("\n".join(f"== {' '.join(v)}\n{text}" for text, v in groups.items()), encoding="utf-8")


def test_every_rule_with_a_fix_has_cases() -> None:
    for folder in CASES.iterdir():
        if folder.is_dir():
            verified = [p for p in folder.glob("*.golden") if ", verified]" in p.read_text(encoding="utf-8")]
            assert verified, f"{folder.name} has no fix that holds"
