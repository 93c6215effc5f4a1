"""The shipped server under an author's edits: what it publishes is what a check from scratch finds.

Edits come over the protocol as ranges, at a person's pace or in bursts.  Whenever the author pauses and the server has
come to rest, the diagnostics of each file are those of a check from scratch of the same texts: rule, range, message,
severity and related places.  No version is published after a newer one, no range lies outside its text, a fix that is
accepted mends its finding.  While a text does not parse, or stops before any kernel, older findings may stay.

``PALLAS_LSP_MODEL_SECONDS``: the time for all workspaces (default 45), which is used up with ever new seeds.
``PALLAS_LSP_MODEL_SEED``, ``PALLAS_LSP_MODEL_STEPS``, ``PALLAS_LSP_MODEL_SHRINK``, ``PALLAS_LSP_MODEL_ALONE``: as for
``test_model_engine``.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from authors import Author, Step, described, plan
from from_scratch import FromScratch
from jax_environments import JaxPython
from lsprotocol import types
from ranges import place
from shrinking import shrunken
from test_model_engine import ALONE, SECONDS, SEED, SHRINK, STEPS
from typist import Typist, UntrueError

from pallas_lsp.model import Finding, Location, Report, Severity, Stage
from pallas_lsp.server.settings import FolderSettings
from pallas_lsp.source.positions import Lines

WORKSPACES = ("gpu", "blocks")
PATIENCE = 60.0
"""Seconds until a difference at rest counts."""
_SEVERITIES = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.INFORMATION: 3, Severity.HINT: 4}


class Shown(NamedTuple):
    """A diagnostic, as far as two checks of the same text agree."""

    rule: str | int | None
    place: str
    severity: int
    head: str
    rest: str = ""
    related: tuple[str, ...] = ()

    @property
    def alike(self) -> tuple[object, ...]:
        """Of several findings that are alike the server shows one."""
        return self[:4]


@dataclass
class Expected:
    """What is to be shown, by file.  ``may_keep``: a text tells nothing, so that older findings may stay."""

    shown: dict[str, set[Shown]] = field(default_factory=dict)
    may_keep: bool = False


class Bench:
    def __init__(self, python: str, folder: Path) -> None:
        self.python = python
        self.folder = folder
        self.scratch = FromScratch(FolderSettings(interpreter=python, confirm=None).engine(), alone=ALONE)
        self.counted: Counter[str] = Counter()
        self.patience = PATIENCE
        self.newline = "\n"
        self._sessions = 0

    def differs(self, workspace: str, steps: list[Step], until: float = float("inf")) -> str:
        return asyncio.run(self._session(workspace, steps, until))

    async def _session(self, workspace: str, steps: list[Step], until: float) -> str:
        self._sessions += 1
        author = Author.at(workspace, self.folder / workspace, self.newline)
        typist = Typist(author, self.folder / f"home {self._sessions}", self._sessions)
        typist.settings = {"interpreter": self.python, "confirm": "off"}
        await typist.start({"trusted": True, "status": True})
        try:
            return await _Comparison(self, typist).run(steps, until)
        except UntrueError as error:
            return str(error)
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(typist.stop(), 10)


class _Comparison:
    """One session of one list of steps."""

    def __init__(self, bench: Bench, typist: Typist) -> None:
        self.bench = bench
        self.typist = typist
        self.author = typist.author
        self.kept = False
        """Whether older findings may have stayed."""

    async def run(self, steps: list[Step], until: float) -> str:
        self.typist.open_all()
        difference = await self._looked()
        for number, step in enumerate(steps, 1):
            if difference or time.monotonic() > until:
                break
            accepted = step.kind == "fix"
            if not await self.typist.do(step):
                continue
            self.bench.counted["fixes" if accepted else "steps"] += 1
            if self.typist.faults:
                difference = self.typist.faults[0]
            elif step.look or accepted:
                difference = await self._looked()
            if accepted and not difference and not self.kept:
                difference = self._not_mended()
            if difference:
                difference = f"after step {number} ({step}): {difference}"
        return difference or (self.typist.faults[0] if self.typist.faults else "")

    def _not_mended(self) -> str:
        """A fault that was hidden may say the same of another kernel, so that only the place tells."""
        assert self.typist.mended is not None
        name, mended, before = self.typist.mended
        if self._published(name) != {self._diagnostic(name, each) for each in before}:
            return ""
        return f"an action that was accepted changed nothing: {mended.code}, {mended.message}"

    def _published(self, name: str) -> set[Shown]:
        return {self._diagnostic(name, each) for each in self.typist.shown(name)}

    async def _looked(self) -> str:
        """Compare once the server has come to rest; what is found behind faults comes later still."""
        expected, _ = await asyncio.gather(self._expected(), self.typist.quiet())
        until = time.monotonic() + self.bench.patience
        while difference := self._difference(expected):
            if time.monotonic() > until:
                return difference
            await asyncio.sleep(0.1)
        await self.typist.quiet()
        self.kept = expected.may_keep
        self.bench.counted["kept" if expected.may_keep else "compared"] += 1
        self.bench.counted["diagnostics"] += sum(map(len, expected.shown.values()))
        return self._difference(expected)

    def _difference(self, expected: Expected) -> str:
        if expected.may_keep:
            return ""
        for name in self.author.files:
            published, wanted = self._published(name), expected.shown.get(name, set())
            missing = {each.alike for each in wanted} - {each.alike for each in published}
            more = published - wanted
            if missing or more:
                return f"{name}: not published:{_lines(missing)}\npublished without a cause:{_lines(more)}"
        return ""

    async def _expected(self) -> Expected:
        """Check every open document from scratch."""
        texts = {self.author.path(name): self.author.sent(text) for name, text in self.author.texts.items()}
        expected = Expected()
        for path in texts:
            report = await self.bench.scratch.check(texts, str(self.author.folder), path)
            expected.may_keep |= _tells_nothing(report)
            for finding in report.findings:
                name = Path(finding.location.path).name
                expected.shown.setdefault(name, set()).add(self._finding(finding))
        return expected

    def _finding(self, finding: Finding) -> Shown:
        head, _, rest = finding.message.partition("\n")
        related = tuple(f"{self._place(each.location)} {each.message}" for each in finding.related)
        where = self._place(finding.location)
        return Shown(finding.rule, where, _SEVERITIES[finding.severity], head, rest, related)

    def _diagnostic(self, name: str, each: types.Diagnostic) -> Shown:
        head, _, rest = each.message.partition("\n")
        related = tuple(
            f"{self._shown_place(Path(r.location.uri).name, r.location.range)} {r.message}"
            for r in each.related_information or ()
        )
        return Shown(each.code, self._shown_place(name, each.range), int(each.severity or 0), head, rest, related)

    def _shown_place(self, name: str, range_: types.Range) -> str:
        if name not in self.author.files:
            return name
        return f"{name}:{range_.start.line}:{range_.start.character}-{range_.end.line}:{range_.end.character}"

    def _place(self, location: Location) -> str:
        path, range_ = location.path, location.range
        name = Path(path).name
        if name not in self.author.files:
            return name
        text = self.author.texts.get(name) or self.author.on_disk(name)
        lines = Lines(text)
        start, end = (place(text, lines.offset(each)) for each in (range_.start, range_.end))
        return self._shown_place(name, types.Range(start, end))


def _tells_nothing(report: Report) -> bool:
    """Whether older findings may stay: a text that does not parse, or one that stops before any kernel is reached."""
    if any(problem.kind == "syntax" for problem in report.problems):
        return True
    stopped = report.stage is not Stage.READ and not report.findings and bool(report.launches)
    return stopped and not any(each.captures for each in report.launches)


def _lines(found: object) -> str:
    return "".join(f"\n  {each}" for each in sorted(map(repr, found)))  # type: ignore[call-overload]


def with_fixes(steps: list[Step], seed: int) -> list[Step]:
    """The steps with accepted fixes among them."""
    source = random.Random(f"fixes {seed}")
    return [
        each._replace(kind="fix") if each.kind in ("layout", "undo") and source.random() < 0.25 else each
        for each in steps
    ]


@pytest.fixture(scope="module")
def bench(newest_jax_python: JaxPython, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(newest_jax_python.python, tmp_path_factory.mktemp("model"))
    yield bench
    bench.scratch.close()
    print(f"\nmodel of the server: {dict(bench.counted)}")


@pytest.mark.parametrize("workspace", WORKSPACES)
def test_the_server_publishes_what_a_check_from_scratch_finds(bench: Bench, workspace: str) -> None:
    until = time.monotonic() + SECONDS / len(WORKSPACES)
    seed = SEED
    files = Author.at(workspace, bench.folder / workspace).files
    while time.monotonic() < until:
        bench.newline = "\n" if seed % 2 else "\r\n"
        steps = with_fixes(plan(seed, STEPS, files), seed)
        if difference := bench.differs(workspace, steps, until):
            print(f"\nPALLAS_LSP_MODEL_SEED={seed}: {difference}", flush=True)  # looking for fewer steps takes a while
            bench.patience = PATIENCE / 6
            fewest = shrunken(steps, lambda some: bool(bench.differs(workspace, some)), SHRINK)
            raise AssertionError(
                f"PALLAS_LSP_MODEL_SEED={seed} ({bench.newline!r}): {difference}\n\nThe fewest steps that fail:\n"
                f"{described(workspace, fewest, bench.folder / 'described')}\n{bench.differs(workspace, fewest)}"
            )
        bench.counted["seeds"] += 1
        seed += 1
