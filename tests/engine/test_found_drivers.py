"""What discovery found is kept: an edit of a kernel runs what reached it again, and nothing else.

Runs and searches are counted; the worker has no jax.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pallas_lsp.discovery import candidates
from pallas_lsp.model import Document, Report, Snapshot

KERNEL = """
from jax.experimental import pallas as pl
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...]
def launch(x):
    return pl.pallas_call(body, out_shape=x)(x)
"""
EDITED = KERNEL.replace("x_ref[...]\n", "x_ref[...] * 2\n")
SECOND = """
def other_launch(x):
    return pl.pallas_call(body, out_shape=x)(x)
"""
TESTS = """
from kernels import launch
def test_launch():
    launch(1)
"""


class Workspace:
    """A file with a kernel, a test that reaches it, and how often each was looked at."""

    def __init__(self, checker: Any) -> None:
        self.checker = checker
        self.folder = Path(checker.path).parent
        self.tests = self.folder / "test_kernels.py"
        self.tests.write_text(TESTS, encoding="utf-8")
        self.version = 0

    async def check(self, source: str = KERNEL, do: dict[str, str] | None = None, **others: str) -> Report:
        """Check the text of a kernel; ``others``: texts of open documents, by the name without ``.py``."""
        self.version += 1
        # The file is on the disk, for the index, and open in an editor.
        Path(self.checker.path).write_text(source, encoding="utf-8")
        documents = {self.checker.path: self.checker.text(do, source)}
        documents |= {str(self.folder / f"{name}.py"): text for name, text in others.items()}
        opened = {path: Document(path, text, self.version) for path, text in documents.items()}
        report: Report = await self.checker.engine.check(Snapshot(opened, (str(self.folder),)), self.checker.path)
        return report

    @property
    def driver(self) -> str:
        return f"pytest:{self.tests}::test_launch"


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The files that candidates were searched for."""
    if sys.platform != "linux":
        pytest.skip("the cache's folder is set by an environment variable of Linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found: list[str] = []
    find = candidates.find

    def counted(index: Any, snapshot: Snapshot, path: str, lines: Any = None) -> Any:
        found.append(Path(path).name)
        return find(index, snapshot, path, lines)

    monkeypatch.setattr(candidates, "find", counted)
    return found


@pytest.fixture
def make_workspace(make_checker: Callable[..., Any], searches: list[str]) -> Callable[[], Workspace]:
    del searches  # before an engine is made
    return lambda: Workspace(make_checker(discovery=True))


def reached(report: Report) -> list[list[str]]:
    return [[capture.driver for capture in status.captures] for status in report.launches]


async def test_an_edit_of_the_kernel_runs_what_reached_it(
    make_workspace: Callable[[], Workspace], searches: list[str]
) -> None:
    work = make_workspace()
    for number, source in enumerate((KERNEL, EDITED, KERNEL), 1):
        assert reached(await work.check(source)) == [[work.driver]]
        assert work.checker.runs == [work.driver] * number
    assert searches == ["kernels.py"]


async def test_it_outlives_the_engine(make_workspace: Callable[[], Workspace], searches: list[str]) -> None:
    work = make_workspace()
    await work.check()
    again = make_workspace()
    again.checker.path, again.folder, again.tests = work.checker.path, work.folder, work.tests
    assert reached(await again.check(EDITED)) == [[work.driver]]
    assert searches == ["kernels.py"]


async def test_a_change_of_the_test_is_searched_again(
    make_workspace: Callable[[], Workspace], searches: list[str]
) -> None:
    work = make_workspace()
    await work.check()
    report = await work.check(test_kernels=TESTS + "\ndef test_more():\n    launch(2)\n")
    assert sorted(reached(report)[0]) == [work.driver, f"pytest:{work.tests}::test_more"]
    assert searches == ["kernels.py"] * 2
    await work.check(EDITED, test_kernels=TESTS + "\ndef test_more():\n    launch(2)\n")
    assert searches == ["kernels.py"] * 2


async def test_another_file_changes_nothing(make_workspace: Callable[[], Workspace], searches: list[str]) -> None:
    work = make_workspace()
    await work.check()
    await work.check(unrelated="import os\n")
    assert (work.checker.runs, searches) == ([work.driver] * 2, ["kernels.py"])


async def test_a_new_launch_is_searched_for_once(make_workspace: Callable[[], Workspace], searches: list[str]) -> None:
    work = make_workspace()
    await work.check()
    for source in (KERNEL + SECOND, EDITED + SECOND, KERNEL + SECOND):
        assert reached(await work.check(source)) == [[work.driver], []]
    assert searches == ["kernels.py"] * 2


async def test_an_edit_of_the_test_ends_a_search_that_did_not_reach_everything(
    make_workspace: Callable[[], Workspace], searches: list[str]
) -> None:
    """At once: the index, which is seconds old, need not know of the edit."""
    work = make_workspace()
    await work.check(KERNEL + SECOND)
    for text in (TESTS.replace("1", "2"), TESTS):
        assert reached(await work.check(KERNEL + SECOND, test_kernels=text)) == [[work.driver], []]
    assert searches == ["kernels.py"] * 3


async def test_a_driver_that_no_longer_leads_there(
    make_workspace: Callable[[], Workspace], searches: list[str]
) -> None:
    """A helper of the test changed, so that it stops: others are searched."""
    work = make_workspace()
    await work.check()
    report = await work.check(do={work.driver: "raise ValueError: the helper changed"})
    assert reached(report) == [[]]
    assert "ValueError: the helper changed" in report.launches[0].reason
    assert searches == ["kernels.py"] * 2


GPU_KERNEL = """
from jax.experimental.pallas import mosaic_gpu as plgpu
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...]
def launch(x):
    return plgpu.kernel(body, out_type=x)(x)  # pallas_call(
"""


@pytest.mark.parametrize(
    ("words", "targets"),
    [("", ["", "10.0"]), ("# for sm80 only\n", ["", "8.0", "10.0"]), ("# as on hopper, for tcgen05\n", ["", "9.0"])],
)
async def test_other_gpus_answer(
    make_workspace: Callable[[], Workspace], searches: list[str], words: str, targets: list[str]
) -> None:
    """Where the file's own GPU leads to nothing: first those that it names."""
    del searches
    work = make_workspace()
    ids = [f"{work.driver}@{target}" if target else work.driver for target in targets]
    source = GPU_KERNEL + words
    await work.check(source, do=dict.fromkeys(ids, "raise RuntimeError: not on this GPU"))
    assert work.checker.runs == ids
