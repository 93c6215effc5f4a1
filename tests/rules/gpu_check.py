"""Checks tables of small Mosaic GPU kernels against what the rules should say.

Each test module registers its cases with ``cases``.  The first test that runs on a jax runs the kernels of all modules
that pytest collected, in one worker process, so that jax is imported once and not once a rule.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jax_environments import JaxPython
from snippets import Outcome, run

from pallas_lsp.source.edits import apply_edits


@dataclass(frozen=True)
class Case:
    """``marks``: the marked text.  ``fixes``: how many of the offered fixes leave no finding.  ``rule``: if another.

    ``since`` and ``before``: the versions of jax that it is for.  ``related``: how many related places at least.
    ``severity``: the finding's, where that matters.
    """

    text: str
    marks: str = ""
    says: Sequence[str] = ()
    fixes: int = 0
    rule: str | None = None
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = (99,)
    related: int = 0
    severity: str | None = None


_REGISTERED: dict[str, dict[str, Case]] = {}


def cases(rule: str, given: Mapping[str, Case]) -> str:
    """Register the cases of a rule; its name."""
    _REGISTERED[rule] = dict(given)
    return rule


def check(jax: JaxPython, rule: str, given: Mapping[str, Case] | None = None) -> None:
    """Check the registered cases of a rule, or those that are given, which are run on their own."""
    if given is None:
        outcomes, wanted = _outcomes(jax.python, jax.version), _wanted(jax.version, rule)
    else:
        wanted = _fitting(jax.version, given)
        outcomes = _run(jax.python, jax.version, {_key(rule, name): case for name, case in wanted.items()})
    problems = [
        f"{name}: {each}" for name, case in wanted.items() for each in compare(outcomes[_key(rule, name)], case, rule)
    ]
    assert not problems, "\n" + "\n".join(problems)


def _wanted(version: str, rule: str) -> dict[str, Case]:
    return _fitting(version, _REGISTERED[rule])


def _fitting(version: str, given: Mapping[str, Case]) -> dict[str, Case]:
    jax = tuple(int(part) for part in version.split(".") if part.isdigit())
    return {name: case for name, case in given.items() if case.since <= jax < case.before}


def _key(rule: str, name: str) -> str:
    return f"{rule.replace('-', '_')}__{name}"


@functools.cache
def _outcomes(python: str, version: str) -> dict[str, Outcome]:
    return _run(python, version, {_key(r, n): case for r in _REGISTERED for n, case in _wanted(version, r).items()})


def _run(python: str, version: str, every: Mapping[str, Case]) -> dict[str, Outcome]:
    outcomes = run(python, version, {key: case.text for key, case in every.items()})
    edited: dict[str, tuple[str, str, str]] = {}
    for key, case in every.items():
        for finding in outcomes[key].findings[: 1 if case.fixes else 0]:
            for fix in finding.fixes:
                edited[f"{key}__{len(edited)}"] = (key, fix.title, apply_edits(case.text, fix.edits))
    if edited:
        after = run(python, version, {name: text for name, (_, _, text) in edited.items()})
        for name, (key, title, text) in edited.items():
            outcomes[key].fixed[title] = after[name].findings
            outcomes[key].edited[title] = text
    return outcomes


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
        sites = [(f.site.file, f.site.function, f.message[:200]) for f in outcome.faults if f.site]
        return [f"no {wanted}, but {told}; raised at {sites}"]
    finding = found[0]
    problems = [f"{part!r} is not in {finding.message!r}" for part in case.says if part not in finding.message]
    marked = outcome.source(finding)
    if case.marks and marked != case.marks:
        problems.append(f"marks {marked!r}, not {case.marks!r}")
    if case.severity not in (None, finding.severity.value):
        problems.append(f"the severity is {finding.severity.value}, not {case.severity}")
    if len(finding.related) < case.related:
        problems.append(f"{len(finding.related)} related places, not {case.related}")
    clean = [title for title, after in outcome.fixed.items() if not after]
    if len(clean) < case.fixes:
        after = {title: [f"{f.rule}: {f.message}" for f in rest] for title, rest in outcome.fixed.items()}
        problems.append(f"{len(clean)} of the fixes work, not {case.fixes}: {after}")
    return problems
