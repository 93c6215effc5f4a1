"""From faults to findings: the rules in order, the same finding from several captures merged, suppressions, order."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from pallas_lsp.model import Capture, Fault, Finding, Severity, Stage
from pallas_lsp.origins import STAND_INS, assumed, words
from pallas_lsp.rules.base import Rule, registry
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import listed, short
from pallas_lsp.source.syntax import Syntax
from pallas_lsp.source.workspace import memo

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")
_IGNORE = re.compile(r"#\s*pallas-lsp:\s*ignore(?:\[(?P<rules>[^\]]*)\])?")
_STAGES = {
    Stage.READ: "reading",
    Stage.BUILD: "building",
    Stage.TRACE: "tracing",
    Stage.LOWER: "lowering",
    Stage.CONFIRM: "confirming",
}
_ORDER = list(Stage)
_ARGUMENTS_SHOWN = 100


@dataclass
class _Group:
    """The same finding, from one or several captures, drivers and targets."""

    finding: Finding
    kernels: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    captures: dict[str, Capture] = field(default_factory=dict)
    caught: bool = True


def judge(faults: Iterable[Fault], context: Context, paths: Iterable[str] = ()) -> tuple[Finding, ...]:
    """The findings of a run, sorted by place, each once, without those that a comment silences.

    ``paths``: files whose text is read for what shows without running it, too.
    """
    groups: dict[tuple[object, ...], _Group] = {}
    for fault in faults:
        finding = _judge_one(fault, context)
        if finding is None or suppressed(finding, context):
            continue
        key = (finding.rule, finding.location, finding.severity, re.sub(r"\d+", "#", finding.message))
        group = groups.setdefault(key, _Group(finding))
        capture = context.capture(fault)
        _add(group.kernels, finding.kernel)
        for arguments in finding.arguments:
            _add(group.arguments, arguments)
        if fault.target:
            _add(group.targets, fault.target)
        group.caught = group.caught and fault.facts.get("caught") is True
        if capture is not None:
            group.captures[capture.id] = capture
    faulty = {identifier for group in groups.values() for identifier in group.captures}
    found = []
    for group in groups.values():
        passed = _passed(group, faulty, context)
        if group.caught and passed:
            group.finding = _expected(group.finding)
        found.append(_merged(group, [each.arguments for each in passed]))
    return sort([*found, *_read(paths, context, found)])


def _read(paths: Iterable[str], context: Context, known: Iterable[Finding]) -> list[Finding]:
    """What the texts alone show, but for what a run showed at the same place."""
    places = {(finding.rule, finding.location) for finding in known}
    found = []
    for path in paths:
        syntax = context.syntax(path)
        for rule in registry() if syntax is not None else ():
            for finding in _contained(rule, partial(_reading, rule, path, syntax, context)) or ():
                if (finding.rule, finding.location) not in places and not suppressed(finding, context):
                    places.add((finding.rule, finding.location))
                    found.append(finding)
    return found


def read_ahead(path: str, context: Context) -> None:
    """Read a text while its code runs: ``judge`` then finds what the rules say of it."""
    syntax = context.syntax(path)
    for rule in registry():
        _contained(rule, partial(_reading, rule, path, syntax, context))


def _reading(rule: Rule, path: str, syntax: Syntax | None, context: Context) -> list[Finding]:
    """What a rule reads in a text; the report of tracing and the final one ask for the same."""
    if rule.read is None or syntax is None:
        return []
    known = memo(context.snapshot)
    key = ("judged", rule.name, path, syntax.text, context.jax)
    found: list[Finding] | None = known.get(key)
    if found is None:
        found = known[key] = list(rule.read(path, syntax, context))
    return found


def _contained(rule: Rule, answer: Callable[[], _Answer]) -> _Answer | None:
    """What a rule answers; a rule that fails answers nothing, so that the others are still heard."""
    try:
        return answer()
    except Exception:
        logger.exception("The rule %s failed and is left out. Please report this.", rule.name)
        return None


def _judge_one(fault: Fault, context: Context) -> Finding | None:
    for rule in registry():
        finding = _contained(rule, partial(rule.judge, fault, context))
        if finding is not None:
            return _assumed(finding, fault.driver) if assumed(fault.driver) else finding
    return None


def _assumed(finding: Finding, driver: str) -> Finding:
    """A finding that may be the fault of a guess or of a stand-in: never more than a hint, and labelled."""
    why = "This is for assumed argument types: nothing calls the kernel with known ones."
    if driver.startswith(STAND_INS):
        why = f"This is assumed: it was found by running {words(driver)}."
    message = f"{finding.message}\n{why}"
    return replace(finding, message=message, severity=Severity.HINT, data={**finding.data, "assumed": True})


def _add(items: list[str], item: str) -> None:
    if item and item not in items:
        items.append(item)


def _expected(finding: Finding) -> Finding:
    """A finding of one configuration of several that are tried, whose failure the user's code expects."""
    why = "What launches it catches this exception, and other configurations of the kernel pass."
    return replace(finding, message=f"{finding.message}\n{why}", severity=Severity.HINT)


def _passed(group: _Group, faulty: Collection[str], context: Context) -> list[Capture]:
    """The captures with which the same kernels came past the stage of a finding, and have no other."""
    kernels = {(capture.launch, capture.body) for capture in group.captures.values()}
    return [
        capture
        for capture in context.captures.values()
        if (capture.launch, capture.body) in kernels
        and capture.id not in faulty
        and _ORDER.index(capture.stage) >= _ORDER.index(group.finding.stage)
    ]


def _merged(group: _Group, fine: list[str]) -> Finding:
    finding = group.finding
    passed = [each for each in dict.fromkeys(fine) if each and each not in group.arguments]
    data = {**finding.data, "targets": list(group.targets)} if group.targets else finding.data
    return replace(
        finding,
        message=f"{finding.message}\n{_circumstances(group, passed)}".rstrip(),
        kernel=", ".join(group.kernels),
        arguments=tuple(group.arguments),
        data=data,
    )


def _circumstances(group: _Group, passed: list[str]) -> str:
    """Where and for what it was found: ``Found while tracing kernel `k` for f32[64] only; f32[128] is fine.``"""
    if not group.kernels and not group.arguments:
        return ""
    names = ", ".join(f"`{name}`" for name in group.kernels)
    text = f"Found while {_STAGES[group.finding.stage]}"
    if names:
        text += f" {'kernel' if len(group.kernels) == 1 else 'kernels'} {names}"
    if group.arguments:
        text += f" for {listed([short(a, _ARGUMENTS_SHOWN) for a in group.arguments])}"
    targets = {target for capture in group.captures.values() for target in capture.targets}
    if group.targets and targets - set(group.targets):
        text += f" on {', '.join(group.targets)} only"
    elif group.arguments and passed:
        text += " only"
    if group.arguments and passed:
        fine = listed([short(each, _ARGUMENTS_SHOWN) for each in passed])
        text += f"; {fine} {'is' if len(passed) == 1 else 'are'} fine"
    return text + "."


def suppressed(finding: Finding, context: Context) -> bool:
    """Whether a comment ``# pallas-lsp: ignore[rule]`` (or ``ignore`` alone) on its first or last line silences it."""
    syntax = context.syntax(finding.location.path)
    if syntax is None or _IGNORE.search(syntax.text) is None:
        return False
    range_ = finding.location.range
    for line in {range_.start.line, range_.end.line}:
        match = _IGNORE.search(syntax.comments.get(line, ""))
        if match is None:
            continue
        rules = match.group("rules")
        if rules is None or finding.rule in {rule.strip() for rule in rules.split(",")}:
            return True
    return False


def sort(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: (f.location, f.rule, f.message)))
