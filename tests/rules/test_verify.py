from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from made import PATH, capture

from pallas_lsp.engine.verify import edited_snapshot, verify
from pallas_lsp.model import (
    Backend,
    Document,
    Edit,
    Finding,
    Fix,
    Launch,
    LaunchStatus,
    Location,
    Position,
    Problem,
    Range,
    Report,
    Snapshot,
    Stage,
)

TEXT = "a = bad(1)\nb = other(2)\n"
SNAPSHOT = Snapshot({PATH: Document(PATH, TEXT, 3)}, ("/project",))


def at(line: int, start: int, end: int) -> Location:
    return Location(PATH, Range(Position(line, start), Position(line, end)))


FINDING = Finding("some-rule", at(0, 4, 10), "bad is bad", kernel="kernel")
OTHER = Finding("another-rule", at(1, 4, 12), "other is bad", kernel="kernel2")
LAUNCH = Launch(at(0, 0, 1), "plgpu.kernel", Backend.MOSAIC_GPU, "kernel")


def report(
    *findings: Finding, stage: Stage = Stage.LOWER, problems: tuple[Problem, ...] = (), reached: bool = True
) -> Report:
    captures = (capture(stage=stage),) if reached else ()
    status = LaunchStatus(LAUNCH, captures, "" if reached else "the main block stopped")
    return Report(PATH, 3, Stage.LOWER, True, findings, (status,), problems)


class Checker:
    """Stands in for the engine: what a text's report is, decides a function."""

    def __init__(self, after: Callable[[str], Report], before: Report) -> None:
        self.after = after
        self.before = before
        self.texts: list[str] = []

    async def check(self, snapshot: Snapshot, path: str) -> Report:
        text = snapshot.documents[path].text
        self.texts.append(text)
        return self.before if text == TEXT else self.after(text)


def fix(*edits: tuple[Location, str], title: str = "Mend it") -> Fix:
    return Fix(title, tuple(Edit(place.path, place.range, new) for place, new in edits))


GOOD = fix((at(0, 4, 7), "good"))
BEFORE = report(FINDING, OTHER, stage=Stage.TRACE)


async def tried(own: Fix, after: Report, before: Report = BEFORE) -> Fix:
    return await verify(Checker(lambda _: after, before), SNAPSHOT, PATH, FINDING, own)


async def test_a_fix_that_holds() -> None:
    found = await tried(GOOD, report(OTHER))
    assert (found.verified, found.reason) == (True, "")


async def test_the_report_before_is_not_asked_for_twice() -> None:
    checker = Checker(lambda _: report(OTHER), BEFORE)
    assert (await verify(checker, SNAPSHOT, PATH, FINDING, GOOD, BEFORE)).verified
    assert checker.texts == ["a = good(1)\nb = other(2)\n"]


async def test_other_findings_may_move() -> None:
    longer = fix((at(0, 0, 0), "new\n"))
    moved = replace(OTHER, location=at(2, 4, 12))
    assert (await tried(longer, report(moved))).verified
    assert not (await tried(longer, report(OTHER))).verified


async def test_the_finding_is_still_there() -> None:
    offering = replace(FINDING, fixes=(GOOD,))
    found = await verify(Checker(lambda _: report(offering, OTHER), BEFORE), SNAPSHOT, PATH, offering, GOOD, BEFORE)
    assert (found.verified, found.reason) == (False, "the finding is still there")


async def test_another_finding_came() -> None:
    new = Finding("pallas-error", at(1, 0, 1), "worse than before.\nFound while lowering.")
    found = await tried(GOOD, report(OTHER, new))
    assert (found.verified, found.reason) == (False, "then line 2 is refused: worse than before.")


async def test_the_kernel_must_be_lowered_to_the_end() -> None:
    found = await tried(GOOD, report(OTHER, stage=Stage.TRACE))
    assert (found.verified, found.reason) == (False, "then the kernel kernel is not lowered to the end")


async def test_the_kernel_must_still_be_reached() -> None:
    found = await tried(GOOD, report(OTHER, reached=False))
    assert (found.verified, found.reason) == (
        False,
        "then the kernel kernel is not reached any more: the main block stopped",
    )


async def test_a_problem_that_came() -> None:
    found = await tried(GOOD, report(OTHER, problems=(Problem("crashed", "the process died", ""),)))
    assert (found.verified, found.reason) == (False, "the process died")


async def test_what_cannot_be_tried() -> None:
    overlapping = await tried(fix((at(0, 0, 5), "x"), (at(0, 3, 6), "y")), report())
    assert overlapping.verified is False and "cannot be applied" in overlapping.reason
    broken = await tried(fix((at(0, 4, 7), "(")), report())
    assert broken.verified is False and "does not parse" in broken.reason
    nothing = await tried(fix((at(0, 4, 7), "bad")), report())
    assert (nothing.verified, nothing.reason) == (False, "it changes nothing")
    gone = await tried(Fix("t", (Edit("/project/gone.py", at(0, 0, 0).range, "x"),)), report())
    assert gone.verified is False and "cannot be read" in gone.reason


def test_edits_in_several_files(tmp_path) -> None:
    other = tmp_path / "other.py"
    other.write_text("c = 1\n", encoding="utf-8")
    edits = (Edit(PATH, at(0, 0, 1).range, "z"), Edit(str(other), at(0, 4, 5).range, "2"))
    edited = edited_snapshot(SNAPSHOT, edits)
    assert edited.documents[PATH].text == "z = bad(1)\nb = other(2)\n"
    assert edited.documents[PATH].version == 3
    assert edited.documents[str(other)].text == "c = 2\n"
    assert other.read_text(encoding="utf-8") == "c = 1\n"
