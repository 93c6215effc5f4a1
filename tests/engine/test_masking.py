"""Which new findings a mended fault had hidden: stand-ins for the engine, whose reports are made by hand."""

from __future__ import annotations

from dataclasses import replace

from pallas_lsp.engine.verify import attempt
from pallas_lsp.model import (
    Backend,
    Body,
    Capture,
    Document,
    Edit,
    Finding,
    Fix,
    Launch,
    LaunchStatus,
    Location,
    Range,
    Related,
    Report,
    Severity,
    Snapshot,
    Stage,
)
from pallas_lsp.source.positions import Lines

PATH = "/project/kernels.py"
TEXT = "def kernel(x, o):\n    y = first(x)\n    z = second(y)\n    w = third(x)\n    o[...] = w\n"
SNAPSHOT = Snapshot({PATH: Document(PATH, TEXT, 1)}, ("/project",))


def where(part: str, text: str = TEXT) -> Location:
    start = text.index(part)
    return Location(PATH, Lines(text).range(start, start + len(part)))


def finding(part: str, stage: Stage = Stage.TRACE, text: str = TEXT, **more) -> Finding:
    return Finding(f"rule-{part[:5]}", where(part, text), f"{part} is wrong", stage=stage, kernel="kernel", **more)


def report(*findings: Finding, stage: Stage = Stage.TRACE, kernel: str = "kernel") -> Report:
    capture = Capture("c1", "pl.pallas_call", Backend.TPU, "main", "f32[8]", body=Body(PATH, 1, kernel), stage=stage)
    status = LaunchStatus(Launch(where("kernel"), "pl.pallas_call", Backend.TPU, kernel), (capture,))
    return Report(PATH, 1, Stage.LOWER, True, findings, (status,))


class Checker:
    def __init__(self, after: Report) -> None:
        self.after = after

    async def check(self, snapshot: Snapshot, path: str) -> Report:
        return self.after


FIRST = finding("first(x)")
FIX = Fix("Mend it", (Edit(PATH, where("first(x)").range, "right(x)"),))
AFTER = TEXT.replace("first(x)", "right(x)")


async def tried(after: Report, before: Report | None = None, fix: Fix = FIX, own: Finding = FIRST):
    return await attempt(Checker(after), SNAPSHOT, PATH, own, fix, before or report(own))


async def test_an_independent_fault_further_down_was_hidden() -> None:
    result = await tried(report(finding("third(x)", text=AFTER)))
    assert (result.fix.verified, result.fix.reason) == (
        True,
        "line 4 has a further fault, which shows then: third(x) is wrong",
    )
    assert [f.message for f in result.uncovered] == ["third(x) is wrong"]


async def test_a_fault_of_a_later_stage_was_hidden() -> None:
    result = await tried(report(finding("third(x)", Stage.LOWER, AFTER)))
    assert result.fix.verified


async def test_what_comes_from_the_edited_name_was_caused() -> None:
    result = await tried(report(finding("second(y)", text=AFTER)))
    assert (result.fix.verified, result.fix.reason) == (False, "then line 3 is refused: second(y) is wrong")
    assert result.uncovered == ()


async def test_a_fault_of_the_order_of_operations_does_not_come_from_values() -> None:
    waits = finding("second(y)", Stage.LOWER, AFTER)
    attempt_ = await tried(report(replace(waits, rule="read-before-wait"), stage=Stage.LOWER))
    assert attempt_.fix.verified and [each.rule for each in attempt_.uncovered] == ["read-before-wait"]
    there = replace(finding("right(x)", Stage.LOWER, AFTER), rule="read-before-wait")
    assert not (await tried(report(there, stage=Stage.LOWER))).fix.verified


async def test_what_is_added_beside_an_argument_leaves_it_as_it_is() -> None:
    head = "from jax.experimental import pallas as pl\n"
    text = head + TEXT + "pl.pallas_call(kernel, out_shape=t, in_specs=[a])(v)\n"
    at = where("[a]", text)
    end = Range(at.range.end, at.range.end)
    fix = Fix("Mend it", (Edit(PATH, end, ", grid=(2,)"),))
    after = text.replace("[a]", "[a], grid=(2,)")
    snapshot = Snapshot({PATH: Document(PATH, text, 1)}, ("/project",))
    own = replace(finding("[a]", Stage.BUILD, text), rule="rule-grid")
    checker = Checker(report(finding("third(x)", Stage.TRACE, after)))
    assert (await attempt(checker, snapshot, PATH, own, fix, report(own, stage=Stage.BUILD))).fix.verified


async def test_what_the_edit_wrote_was_caused() -> None:
    result = await tried(report(finding("right(x)", text=AFTER)))
    assert not result.fix.verified


async def test_a_related_place_that_was_edited_means_caused() -> None:
    related = (Related(where("right(x)", AFTER), "It comes from here."),)
    result = await tried(report(finding("third(x)", text=AFTER, related=related)))
    assert not result.fix.verified


async def test_a_kernel_that_was_followed_to_the_end_hid_nothing() -> None:
    warning = replace(FIRST, severity=Severity.WARNING)
    after = report(finding("third(x)", text=AFTER), stage=Stage.LOWER)
    assert not (await tried(after, report(warning, stage=Stage.LOWER), own=warning)).fix.verified
    assert not (await tried(after, report(FIRST, stage=Stage.LOWER))).fix.verified


async def test_a_fault_of_an_earlier_stage_cannot_have_been_hidden() -> None:
    own = replace(FIRST, stage=Stage.LOWER)
    assert not (await tried(report(finding("third(x)", Stage.TRACE, AFTER)), own=own)).fix.verified


async def test_another_kernel_is_not_concerned() -> None:
    other = replace(finding("third(x)", text=AFTER), kernel="another")
    assert not (await tried(report(other))).fix.verified


async def test_a_fault_outside_of_kernels_hides_those_that_were_not_reached() -> None:
    own = replace(FIRST, kernel="")
    hidden = finding("third(x)", text=AFTER)
    nothing = replace(report(own), launches=())
    assert (await tried(report(hidden), nothing, own=own)).fix.verified
    assert not (await tried(report(hidden), report(own), own=own)).fix.verified


async def test_the_same_fault_at_its_own_place_is_no_other() -> None:
    again = replace(finding("right(x)", text=AFTER), rule=FIRST.rule, fixes=(FIX,))
    result = await tried(report(again))
    assert result.fix.reason == "the finding is still there"
