"""Nothing is found in correct kernels that look like faulty ones, and every one of them is reached and lowered."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from jax_environments import JaxPython

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Report, Severity, Snapshot, Stage

FILES = sorted((Path(__file__).parent / "correct").glob("*.py"))


async def check(python: str, path: Path) -> Report:
    engine = Engine(Settings(python=python))
    try:
        return await engine.check(Snapshot({}, (str(path.parent),)), str(path))
    finally:
        await engine.aclose()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_found(path: Path, jax_python: JaxPython) -> None:
    report = asyncio.run(check(jax_python.python, path))
    found = [f for f in report.findings if f.severity in (Severity.ERROR, Severity.WARNING)]
    assert [f"{f.location.range.start.line + 1}: {f.rule}: {f.message}" for f in found] == []
    assert [problem.message for problem in report.problems] == []
    captures = [capture for status in report.launches for capture in status.captures]
    unfinished = [capture.body for capture in captures if capture.stage is not Stage.LOWER]
    assert unfinished == []
    reached = {capture.launch.line for capture in captures if capture.launch}
    text = path.read_text(encoding="utf-8")
    assert len(reached) == sum(text.count(launch) for launch in ("pl.pallas_call(", "plgpu.kernel(", "mg.kernel"))
