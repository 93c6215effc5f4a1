"""Checks a table of small Mosaic GPU kernels against what a rule should say, on one jax, in one worker run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jax_environments import JaxPython
from snippets import Outcome, run

from pallas_lsp.source.edits import apply_edits


@dataclass(frozen=True)
class Case:
    """``marks``: the marked text.  ``fixes``: how many of the offered fixes leave no finding.  ``rule``: if another.

    ``jax``: the versions it is for, as ``since`` and ``before``.
    """

    text: str
    marks: str = ""
    says: Sequence[str] = ()
    fixes: int = 0
    rule: str | None = None
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = (99,)
    related: int = 0


def check(jax: JaxPython, rule: str, cases: Mapping[str, Case]) -> None:
    version = tuple(int(part) for part in jax.version.split(".") if part.isdigit())
    wanted = {name: case for name, case in cases.items() if case.since <= version < case.before}
    outcomes = run(jax.python, jax.version, {name: case.text for name, case in wanted.items()})
    _try_fixes(jax, wanted, outcomes)
    problems = [f"{name}: {each}" for name, case in wanted.items() for each in compare(outcomes[name], case, rule)]
    assert not problems, "\n" + "\n".join(problems)


def _try_fixes(jax: JaxPython, cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> None:
    """What is found after the fixes of the cases that want any."""
    edited: dict[str, tuple[str, str, str]] = {}
    for name, case in cases.items():
        for finding in outcomes[name].findings[: 1 if case.fixes else 0]:
            for fix in finding.fixes:
                edited[f"{name}__{len(edited)}"] = (name, fix.title, apply_edits(case.text, fix.edits))
    if edited:
        after = run(jax.python, jax.version, {key: text for key, (_, _, text) in edited.items()})
        for key, (name, title, text) in edited.items():
            outcomes[name].fixed[title] = after[key].findings
            outcomes[name].edited[title] = text


def compare(outcome: Outcome, case: Case, rule: str) -> list[str]:
    """What is not as expected.  ``case.rule`` "" wants no finding at all."""
    wanted = rule if case.rule is None else case.rule
    if outcome.crash:
        return [outcome.crash]
    told = [f"{f.rule}: {f.message}" for f in outcome.findings]
    if not wanted:
        return [f"unexpected {each}" for each in told]
    found = [f for f in outcome.findings if f.rule == wanted]
    if not found:
        sites = [(f.site.file, f.site.function) for f in outcome.faults if f.site]
        return [f"no {wanted}, but {told}; raised at {sites}"]
    finding = found[0]
    problems = [f"{part!r} is not in {finding.message!r}" for part in case.says if part not in finding.message]
    marked = outcome.source(finding)
    if case.marks and marked != case.marks:
        problems.append(f"marks {marked!r}, not {case.marks!r}")
    if len(finding.related) < case.related:
        problems.append(f"{len(finding.related)} related places, not {case.related}")
    clean = [title for title, after in outcome.fixed.items() if not after]
    if len(clean) < case.fixes:
        after = {title: [f"{f.rule}: {f.message}" for f in rest] for title, rest in outcome.fixed.items()}
        problems.append(f"{len(clean)} of the fixes work, not {case.fixes}: {after}")
    return problems
