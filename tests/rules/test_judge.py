from __future__ import annotations

from dataclasses import replace

from made import PATH, capture, context, fault, frame

from pallas_lsp.engine.judge import judge
from pallas_lsp.model import Capture, Document, Finding, Location, Position, Range, Severity, Stage
from pallas_lsp.rules.base import Rule, registry
from pallas_lsp.rules.context import Context

TEXT = """\
def kernel(x_ref, o_ref):
    o_ref[...] = f(x_ref)
    o_ref[...] = g(x_ref)  # pallas-lsp: ignore[pallas-error]
    o_ref[...] = h(x_ref)  # pallas-lsp: ignore[another-rule, one-more]
    o_ref[...] = i(x_ref)  # why: see above  # pallas-lsp:ignore
    s = "# pallas-lsp: ignore"; j(x_ref)
    k(
        x_ref,
    )  # pallas-lsp: ignore
"""


def test_the_same_finding_of_several_captures_is_one() -> None:
    captures = [capture("c1", "f32[64]"), capture("c2", "f32[128]"), capture("c3", "f32[64]", name="other")]
    at = frame(TEXT, "f(x_ref)")
    faults = [fault(at, message=f"size {n} is wrong", capture=f"c{n}", id=f"f{n}") for n in (1, 2, 3)]
    (found,) = judge(faults, context(TEXT, captures=captures))
    assert found.arguments == ("f32[64]", "f32[128]")
    assert found.kernel == "kernel, other"
    assert found.message == ("size 1 is wrong.\nFound while tracing kernels `kernel`, `other` for f32[64]; f32[128].")


def test_a_finding_says_for_which_types_it_holds_and_which_are_fine() -> None:
    def said(*captures: Capture, stage: Stage = Stage.TRACE) -> str:
        own = [fault(frame(TEXT, "f(x_ref)"), message="no", capture="c1", stage=stage)]
        (found,) = judge(own, context(TEXT, captures=[capture("c1", "f32[64]", stage=Stage.BUILD), *captures]))
        return found.message.splitlines()[-1]

    for_it = "Found while tracing kernel `kernel` for f32[64]"
    traced = capture("c2", "f32[128]", stage=Stage.TRACE)
    assert said(traced) == f"{for_it} only; f32[128] is fine."
    both = said(traced, capture("c3", "f32[256]", stage=Stage.LOWER))
    assert both == f"{for_it} only; f32[128]; f32[256] are fine."
    assert said(capture("c2", "f32[128]", stage=Stage.BUILD)) == f"{for_it}.", "it did not come that far"
    assert said(traced, stage=Stage.LOWER).endswith("for f32[64]."), "nor did this one"
    assert said(capture("c2", "f32[128]", stage=Stage.LOWER, name="other")) == f"{for_it}.", "another kernel"
    assert said(capture("c2", "f32[64]", stage=Stage.LOWER)) == f"{for_it}.", "the same types, otherwise called"


def test_types_with_another_finding_are_not_fine() -> None:
    captures = [capture("c1", "f32[64]"), capture("c2", "f32[128]", stage=Stage.LOWER)]
    faults = [
        fault(frame(TEXT, "f(x_ref)"), message="no", capture="c1"),
        fault(frame(TEXT, "h(x_ref)"), message="nor this", capture="c2", stage=Stage.LOWER, id="f2"),
    ]
    found = judge(faults, context(TEXT, captures=captures))
    assert sorted(finding.message.splitlines()[-1] for finding in found) == [
        "Found while lowering kernel `kernel` for f32[128].",
        "Found while tracing kernel `kernel` for f32[64].",
    ]


def test_a_failure_that_the_caller_expects() -> None:
    """A loop over configurations catches what one raises: no more than a hint, if another passes."""

    def severity(*captures: Capture, caught: bool = True) -> Severity:
        facts = {"caught": True} if caught else {}
        own = [fault(frame(TEXT, "f(x_ref)"), message="too large", capture="c1", stage=Stage.LOWER, facts=facts)]
        (found,) = judge(own, context(TEXT, captures=[capture("c1", "f32[64]", stage=Stage.TRACE), *captures]))
        assert ("catches this exception" in found.message) is (found.severity is Severity.HINT)
        return found.severity

    passes = capture("c2", "f32[64]", stage=Stage.LOWER)
    assert severity(passes) is Severity.HINT
    assert severity(passes, caught=False) is Severity.ERROR
    assert severity() is Severity.ERROR, "no configuration passes"
    assert severity(capture("c2", "f32[64]", stage=Stage.LOWER, name="other")) is Severity.ERROR


def test_what_was_found_with_stand_ins_is_a_hint() -> None:
    own = replace(fault(frame(TEXT, "f(x_ref)"), message="no"), driver="stub:pytest:/w/test_a.py::test_a")
    (found,) = judge([own], context(TEXT, captures=[capture()]))
    assert found.severity is Severity.HINT
    assert "test_a.py::test_a with stand-ins for absent packages" in found.message


def test_different_findings_at_one_place_stay_apart() -> None:
    at = frame(TEXT, "f(x_ref)")
    assert len(judge([fault(at, message="one"), fault(at, message="another")], context(TEXT))) == 2


def test_targets_are_told_where_only_some_fail() -> None:
    captures = [capture(targets=("cuda:9.0", "cuda:10.0"))]
    at = frame(TEXT, "f(x_ref)")
    own = [fault(at, message="no", stage=Stage.LOWER, target="cuda:10.0")]
    (found,) = judge(own, context(TEXT, captures=captures))
    assert found.message.endswith("Found while lowering kernel `kernel` for f32[64] on cuda:10.0 only.")
    assert found.data["targets"] == ["cuda:10.0"]


def test_comments_silence_a_line() -> None:
    def seen(source: str) -> bool:
        return bool(judge([fault(frame(TEXT, source), message="no")], context(TEXT)))

    assert seen("f(x_ref)")
    assert not seen("g(x_ref)")
    assert seen("h(x_ref)")
    assert not seen("i(x_ref)")
    assert seen("j(x_ref)")


def test_a_comment_at_the_end_of_a_call_over_lines_silences_it() -> None:
    own = fault(frame(TEXT, "k(\n        x_ref,\n    )"), exception="builtins.NotImplementedError")
    # The fall-back marks the call's name alone; a comment on that line counts, one at the end of the call does not.
    assert judge([own], context(TEXT))
    assert not judge([own], context(TEXT.replace("    k(", "    k(  # pallas-lsp: ignore[pallas-error]")))


def test_findings_are_sorted_by_place() -> None:
    faults = [fault(frame(TEXT, s), message="no") for s in ("h(x_ref)", "f(x_ref)")]
    lines = [f.location.range.start.line for f in judge(faults, context(TEXT))]
    assert lines == [1, 3]
    assert {f.location.path for f in judge(faults, context(TEXT))} == {PATH}


def test_no_faults() -> None:
    assert judge([], context(TEXT)) == ()


def test_a_rule_that_fails_leaves_the_others_their_say(monkeypatch, caplog) -> None:
    def fails(*_):
        raise RuntimeError("a fault of ours")

    broken = Rule("broken", "0.1.0", "", judge=fails, specificity=100, read=fails)
    monkeypatch.setattr("pallas_lsp.engine.judge.registry", lambda: (broken, *registry()))
    (found,) = judge([fault(frame(TEXT, "f(x_ref)"), message="no")], context(TEXT), [PATH])
    assert found.rule == "pallas-error"
    assert {"broken"} == {record.args[0] for record in caplog.records if record.args}


def test_what_a_text_shows_is_read_once_for_the_reports_of_one_check(monkeypatch) -> None:
    asked = []

    def read(path, syntax, given):
        asked.append((syntax.text, given.jax))
        return [Finding("counting", Location(path, at(0)), "no", stage=Stage.READ)]

    def at(line: int) -> Range:
        return Range(Position(line, 0), Position(line, 1))

    counting = Rule("counting", "0.1.0", "", judge=lambda *_: None, specificity=100, read=read)
    monkeypatch.setattr("pallas_lsp.engine.judge.registry", lambda: (counting,))
    of_one_check = context(TEXT)
    traced = judge([], of_one_check, [PATH])
    assert judge([], Context(of_one_check.snapshot, of_one_check.info), [PATH]) == traced
    assert len(asked) == 1
    edited = replace(of_one_check.snapshot, documents={PATH: Document(PATH, "x = 1\n" + TEXT)})
    judge([], Context(edited, of_one_check.info), [PATH])
    assert [text for text, _ in asked] == [TEXT, "x = 1\n" + TEXT]
