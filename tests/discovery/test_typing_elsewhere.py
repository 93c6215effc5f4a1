"""Editing a kernel whose argument types come from another file: what is run, and imported, again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pallas_lsp.engine import Engine, Settings
from pallas_lsp.model import Document, Driver, Report, Snapshot

KERNELS = """
import sys
print("beforehand", [name in sys.modules for name in ("pytest", "_pytest.unittest", "unittest.mock", "installed")])
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def scale(x):
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
TEST = """
import unittest.mock
import jax.numpy as jnp
import helper
from kernels import scale
def test_scale():
    scale(jnp.ones(128))
def test_nothing():
    pass
"""
OTHER = "from kernels import scale\ndef test_other():\n    assert callable(scale)\n"
SCRIPT = "import jax.numpy as jnp\nfrom kernels import scale\nif __name__ == '__main__':\n    scale(jnp.ones(256))\n"


class Watched:
    """An engine, and the drivers of each of its runs."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.path = str(folder / "kernels.py")
        self.roots = (str(folder),)
        self.runs: list[list[str]] = []
        runner: Any = engine._runner
        original = runner.run

        async def run(
            python: str, snapshot: Snapshot, path: str, drivers: tuple[Driver, ...], *more: Any, **options: Any
        ) -> Any:
            own = "module"  # the file's own top level is run where a search takes long: that is no search
            elsewhere = [driver.id.replace(f"{folder}/", "") for driver in drivers if driver.id != own]
            self.runs += [elsewhere] if elsewhere else []
            return await original(python, snapshot, path, drivers, *more, **options)

        runner.run = run

    async def check(self, text: str) -> Report:
        self.runs.clear()
        return await self.engine.check(Snapshot({self.path: Document(self.path, text, 1)}, self.roots), self.path)


@pytest.fixture
async def watched(jax_python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (folder / "helper.py").write_text("", encoding="utf-8")
    log: list[str] = []
    engine = Engine(Settings(python=jax_python.python), log.append)
    engine.lines = log  # type: ignore[attr-defined]
    yield Watched(engine, folder)
    await engine.aclose()


def edited(number: int) -> str:
    return KERNELS.replace("* 2", f"* {number}")


def reached(report: Report) -> list[str]:
    return [capture.arguments for status in report.launches for capture in status.captures]


async def test_an_edit_runs_the_test_that_reaches_the_kernel_and_nothing_else(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "work" / "test_kernels.py").write_text(TEST, encoding="utf-8")
    (tmp_path / "work" / "test_other.py").write_text(OTHER, encoding="utf-8")
    assert reached(await watched.check(KERNELS)) == ["f32[128]"]
    for number in (3, 4):
        assert reached(await watched.check(edited(number))) == ["f32[128]"]
        assert watched.runs == [["pytest:test_kernels.py::test_scale"]]


async def test_an_edit_runs_the_script_that_reaches_the_kernel_and_nothing_else(
    watched: Watched, tmp_path: Path
) -> None:
    (tmp_path / "work" / "test_other.py").write_text(OTHER, encoding="utf-8")
    (tmp_path / "work" / "bench.py").write_text(SCRIPT, encoding="utf-8")
    assert reached(await watched.check(KERNELS)) == ["f32[256]"]
    assert len(watched.runs) == 2, "a test that reaches nothing comes first"
    for number in (3, 4):
        assert reached(await watched.check(edited(number))) == ["f32[256]"]
        assert watched.runs == [["script:bench.py:main"]]


async def test_what_tests_import_is_imported_once(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "work" / "test_kernels.py").write_text(TEST, encoding="utf-8")
    log: list[str] = watched.engine.lines  # type: ignore[attr-defined]
    for number in range(60):
        log.clear()
        assert reached(await watched.check(edited(number))) == ["f32[128]"]
        if any("beforehand [True, True, True, False]" in line for line in log):
            break
        await asyncio.sleep(1)  # the worker imports modules when nothing else is to be done
    else:
        pytest.fail(f"not imported beforehand: {log}")


NEVER = """
def never(flag):
    if flag == "this":
        return plgpu.kernel(body, out_type=())()
"""


async def test_a_launch_that_nothing_reaches_costs_no_search_with_each_edit(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "work" / "test_kernels.py").write_text(TEST, encoding="utf-8")
    (tmp_path / "work" / "test_other.py").write_text(OTHER, encoding="utf-8")
    assert reached(await watched.check(KERNELS + NEVER)) == ["f32[128]"]
    for number in (3, 4):
        assert reached(await watched.check(edited(number) + NEVER)) == ["f32[128]"]
        known = [run for run in watched.runs if not run[0].startswith("guess:")]
        assert known == [["pytest:test_kernels.py::test_scale"]]
