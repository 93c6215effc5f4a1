"""One engine that lives through an author's edits says of each text what an engine without a past says.

After each edit the text is checked twice: by the engine that has checked all texts before it, and from scratch.  The
reports are the same: findings with ranges, messages and fixes; launches with their types; problems.

``PALLAS_LSP_MODEL_SECONDS``: the time for all workspaces (default 45), which is used up with ever new seeds.
``PALLAS_LSP_MODEL_SEED``: the first seed (default 1).  ``PALLAS_LSP_MODEL_STEPS``: steps of one seed (default 40).
``PALLAS_LSP_MODEL_SHRINK``: seconds for making a failing list of steps shorter (default 120).
``PALLAS_LSP_MODEL_ALONE=1``: each check from scratch in a new process with a new worker, about 6 s each.
"""

from __future__ import annotations

import ast
import asyncio
import difflib
import os
import pprint
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from authors import Author, Step, described, plan
from from_scratch import FromScratch, engine_on, facts, snapshot_of
from jax_environments import JaxPython
from shrinking import shrunken

from pallas_lsp.engine import Settings
from pallas_lsp.engine.pool import Pool
from pallas_lsp.model import Report

WORKSPACES = ("gpu", "blocks", "elsewhere")
SECONDS = float(os.environ.get("PALLAS_LSP_MODEL_SECONDS", "45"))
SEED = int(os.environ.get("PALLAS_LSP_MODEL_SEED", "1"))
STEPS = int(os.environ.get("PALLAS_LSP_MODEL_STEPS", "40"))
SHRINK = float(os.environ.get("PALLAS_LSP_MODEL_SHRINK", "120"))
ALONE = os.environ.get("PALLAS_LSP_MODEL_ALONE", "") == "1"
_ANOTHER = 9
"""After so many steps an engine ends and another begins, as when an editor is started again."""
_WRITTEN = 0.2
"""Seconds in which results have been written."""


class Bench:
    """A worker for all engines under test, and another for the checks from scratch."""

    def __init__(self, python: str, folder: Path) -> None:
        self.settings = Settings(python=python, jobs=2, figures=True)
        self.scratch = FromScratch(self.settings, alone=ALONE)
        self.folder = folder
        self.runner = asyncio.Runner()
        self.pool = self.runner.run(self._pool())
        self.counted: Counter[str] = Counter()
        self._engines = 0

    async def _pool(self) -> Pool:
        return Pool(self.settings, lambda _: None)

    def differs(
        self, workspace: str, steps: list[Step], until: float = float("inf"), key: Callable[[str], object] | None = None
    ) -> str:
        """The first difference that the steps lead to, else nothing.

        ``key``: a memory that is wrong: what was said of a text is said of all with the same key.
        """
        self._engines += 1
        author = Author.at(workspace, self.folder / workspace)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(self.folder / f"cache {self._engines}"))
            # A search that found nothing is repeated at once, as one from scratch is.
            patch.setattr("pallas_lsp.engine.elsewhere._LEAST_PAUSE", 0.0)
            patch.setattr("pallas_lsp.engine.elsewhere._PAUSE", 0.0)
            patch.setattr("pallas_lsp.discovery.index.Index.refresh.__defaults__", (0.0,))
            return self.runner.run(self._differs(author, steps, until, key))

    async def _differs(
        self, author: Author, steps: list[Step], until: float, key: Callable[[str], object] | None
    ) -> str:
        settings = replace(self.settings, kept=self.folder / f"results {self._engines}")
        engine = engine_on(self.pool, settings)
        said: dict[object, Report] = {}
        for number, step in enumerate([None, *steps]):
            if time.monotonic() > until:
                break
            if step is not None and author.apply(step) is None:
                continue
            if number % _ANOTHER == 0:  # it has what the one before left on the disk
                await asyncio.sleep(_WRITTEN)
                engine = engine_on(self.pool, settings)
            texts = {author.path(name): text for name, text in author.texts.items()}
            paths = [author.path(author.files[0])]
            if step is not None and step.file != author.files[0] and number % 4 == 0:
                paths.append(author.path(step.file))
            for path in paths:
                snapshot = snapshot_of(texts, str(author.folder), number)
                ours, theirs = await asyncio.gather(
                    engine.check(snapshot, path),
                    self.scratch.check(texts, str(author.folder), path, further=False),
                )
                if key is not None:
                    ours = said.setdefault(key(texts[path]), ours)
                self.counted["checks"] += 1
                self.counted["findings"] += len(theirs.findings)
                if facts(ours) != facts(theirs):
                    return (
                        f"after step {number} ({step}), {Path(path).name}:\n{_difference(facts(theirs), facts(ours))}"
                    )
        return ""

    def close(self) -> None:
        self.scratch.close()
        self.runner.run(self.pool.close())
        self.runner.close()


def _difference(expected: object, got: object) -> str:
    texts = [pprint.pformat(each, width=110).split("\n") for each in (expected, got)]
    return "\n".join(difflib.unified_diff(*texts, "from scratch", "with a past", lineterm="", n=4))


@pytest.fixture(scope="module")
def bench(newest_jax_python: JaxPython, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(newest_jax_python.python, tmp_path_factory.mktemp("model"))
    yield bench
    bench.close()
    print(f"\nmodel of the engine: {dict(bench.counted)}")


@pytest.mark.parametrize("workspace", WORKSPACES)
def test_an_engine_with_a_past_says_what_one_without_says(bench: Bench, workspace: str) -> None:
    until = time.monotonic() + SECONDS / len(WORKSPACES)
    seed = SEED
    files = Author.at(workspace, bench.folder / workspace).files
    while time.monotonic() < until:
        steps = plan(seed, STEPS, files)
        if difference := bench.differs(workspace, steps, until):
            print(f"\nPALLAS_LSP_MODEL_SEED={seed}: {difference}", flush=True)  # looking for fewer steps takes a while
            fewest = shrunken(steps, lambda some: bool(bench.differs(workspace, some)), SHRINK)
            raise AssertionError(
                f"PALLAS_LSP_MODEL_SEED={seed}: {difference}\n\nThe fewest steps that fail:\n"
                f"{described(workspace, fewest, bench.folder / 'described')}\n{bench.differs(workspace, fewest)}"
            )
        bench.counted["seeds"] += 1
        seed += 1


@pytest.mark.parametrize(
    ("key", "steps"),
    [
        (
            lambda text: ast.dump(ast.parse(text)),
            [Step("layout", "kernels.py", seed) for seed in range(4)],
        ),  # findings that did not move with the layout
        (lambda text: text, [Step("meaning", "shared.py", seed) for seed in range(4)]),  # an edited helper is not seen
        (lambda text: text.count("def "), [Step("meaning", "kernels.py", seed) for seed in range(4)]),
    ],
    ids=["layout", "helper", "kernel"],
)
def test_a_wrong_memory_is_found(bench: Bench, key: Callable[[str], object], steps: list[Step]) -> None:
    assert not bench.differs("gpu", steps)
    assert bench.differs("gpu", steps, key=key)
