"""What was found without a GPU against what the GPU showed, judged by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pallas_lsp.confirm.occupancy import occupancy
from pallas_lsp.confirm.verdicts import Opinion, Verdict
from pallas_lsp.model import Backend, Capture, Finding, LaunchStatus, Report, Severity, Stage

FindingKey = tuple[str, str, int, int, str]
COMPILED = ("compiled", "launched")
"""States of a program that the GPU's compiler took."""


@dataclass(frozen=True)
class Judgement:
    """What one kind of GPU says of one file: opinions by finding, findings of its own, what became of each program."""

    gpu: str
    compute_capability: str
    opinions: Mapping[FindingKey, Opinion] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    programs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def finding_key(finding: Finding) -> FindingKey:
    start = finding.location.range.start
    first = finding.message.partition("\n")[0]
    return (finding.rule, finding.location.path, start.line, start.character, first)


def compare(
    report: Report,
    captures: Sequence[Capture],
    findings: Sequence[Finding],
    programs: Mapping[str, Mapping[str, Any]],
    gpu: Mapping[str, Any],
) -> Judgement:
    """``report`` is from the CPU; ``captures``, ``findings`` and ``programs`` (by digest) are from the GPU ``gpu``."""
    name, capability = str(gpu["name"]), str(gpu["compute_capability"])
    before = [capture for status in report.launches for capture in status.captures]
    programs = {**programs, **_under_our_names(before, captures, programs)}
    opinions: dict[FindingKey, Opinion] = {}
    explained: set[int] = set()
    for finding in report.findings:
        twin = _twin(finding, findings)
        if twin is not None:
            explained.add(id(twin))
            detail = "" if twin.rule == finding.rule else f"there it is {twin.rule}"
            opinions[finding_key(finding)] = Opinion(Verdict.CONFIRMED, name, capability, detail)
            continue
        states = _states(_of_kernel(finding, captures), programs)
        if (launch := _ended_launch(states)) is not None and is_silent(finding, before):
            # What the finding says would happen did happen: the launch's own finding would say it twice.
            kernels = set(finding.kernel.split(", "))
            explained.update(id(o) for o in findings if o.stage is Stage.CONFIRM and o.kernel in kernels)
            opinions[finding_key(finding)] = Opinion(Verdict.CONFIRMED, name, capability, launch)
            continue
        verdict = _verdict(finding, before, states)
        if verdict is not None:
            opinions[finding_key(finding)] = Opinion(verdict[0], name, capability, verdict[1])
    own = [
        _device_only(each, name, capability)
        for each in findings
        if id(each) not in explained and _is_of_device(each, report, captures)
    ]
    return Judgement(name, capability, opinions, tuple(own), programs)


def _under_our_names(
    before: Sequence[Capture], captures: Sequence[Capture], programs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """The fates of programs by the digests that the check gave them: another jax on the GPU's side gives others."""
    there = {_identity(capture): list(capture.resources.get("programs") or ()) for capture in captures}
    found: dict[str, Mapping[str, Any]] = {}
    for capture in before:
        own = list(capture.resources.get("programs") or ())
        same = there.get(_identity(capture), [])
        if len(own) == len(same):
            pairs = zip(own, same, strict=True)
            found |= {ours: programs[theirs] for ours, theirs in pairs if ours not in programs and theirs in programs}
    return found


def _identity(capture: Capture) -> tuple[object, ...]:
    return (capture.body, capture.arguments, capture.driver, capture.launch.line if capture.launch else None)


def _twin(finding: Finding, others: Iterable[Finding]) -> Finding | None:
    """The same fault on the GPU: the same rule on the same line, else any fault there."""
    line = finding.location.range.start.line
    here = [o for o in others if o.location.path == finding.location.path and o.location.range.start.line == line]
    same = [other for other in here if other.rule == finding.rule]
    return next(iter(same or [other for other in here if other.severity is finding.severity]), None)


def _of_kernel(finding: Finding, captures: Iterable[Capture]) -> list[Capture]:
    """The captures that a finding speaks of."""
    kernels = set(finding.kernel.split(", ")) - {""}
    arguments = set(finding.arguments)
    return [
        capture
        for capture in captures
        if capture.body is not None
        and capture.body.name in kernels
        and (not arguments or capture.arguments in arguments)
    ]


def _states(captures: Iterable[Capture], programs: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [
        programs.get(digest, entry)
        for capture in captures
        for digest, entry in (capture.resources.get("programs") or {}).items()
    ]


def _ended_launch(states: Iterable[Mapping[str, Any]]) -> str | None:
    """How a launch ended that did not end well."""
    words = {"launch timed out": "the launch did not end", "launch failed": "the launch failed"}
    return next((words[each["state"]] for each in states if each.get("state") in words), None)


def _verdict(
    finding: Finding, before: Sequence[Capture], states: Sequence[Mapping[str, Any]]
) -> tuple[Verdict, str] | None:
    """What the fate of its kernels says of a finding that the GPU did not show; None where it says nothing."""
    for entry in states:
        if entry.get("state") == "timed out":
            return Verdict.TIMED_OUT, f"its compiler took more than {entry.get('seconds', 0):g} s"
        if entry.get("state") == "other":
            return Verdict.NO_GPU, f"the kernel needs {entry.get('needs')}"
    if not states or not all(entry.get("state") in COMPILED for entry in states):
        return None
    if finding.stage is Stage.READ:
        return None  # it is of the text, which may hold more than what was run
    if not is_silent(finding, before):
        return Verdict.NOT_REPRODUCED, ""
    if all(entry.get("state") == "launched" for entry in states):
        return Verdict.NOT_REPRODUCED, "a launch on generated inputs did not show it"
    return Verdict.NOT_REPRODUCED, "as without one; only a launch could show this fault"


def is_silent(finding: Finding, captures: Iterable[Capture]) -> bool:
    """Whether a finding is of a fault that jax accepts: its kernels were lowered to the end."""
    if finding.stage is Stage.READ or finding.severity is not Severity.ERROR:
        return True
    concerned = _of_kernel(finding, captures)
    return bool(concerned) and all(capture.stage in (Stage.LOWER, Stage.CONFIRM) for capture in concerned)


def _is_of_device(finding: Finding, report: Report, captures: Iterable[Capture]) -> bool:
    """Whether a finding of the GPU's is one that only a GPU can show."""
    if finding.stage is Stage.CONFIRM:
        return True
    if finding.stage is not Stage.LOWER:
        return False  # the file's own code ran otherwise with a GPU there; no matter of its compiler
    kernels = set(finding.kernel.split(", "))
    if any(kernels & set(other.kernel.split(", ")) for other in report.findings):
        return False
    # A kernel that names no backend may be another's.
    return all(capture.backend is not Backend.ANY for capture in _of_kernel(finding, captures))


def _device_only(finding: Finding, name: str, capability: str) -> Finding:
    opinion = Opinion(Verdict.DEVICE_ONLY, name, capability)
    return replace(finding, stage=Stage.CONFIRM, data={**finding.data, "verdicts": [opinion.as_data()]})


def annotate(report: Report, judgements: Sequence[Judgement]) -> Report:
    """The report with verdicts in its findings' data, the GPU's own findings, and figures in its captures."""
    findings = [_with_opinions(finding, judgements) for finding in report.findings]
    for judgement in judgements:
        for finding in judgement.findings:
            known = next((n for n, each in enumerate(findings) if finding_key(each) == finding_key(finding)), None)
            if known is None:
                findings.append(finding)
            else:
                verdicts = [*findings[known].data.get("verdicts", ()), *finding.data["verdicts"]]
                findings[known] = replace(findings[known], data={**findings[known].data, "verdicts": verdicts})
    ordered = sorted(findings, key=lambda each: (each.location, each.rule, each.message))
    launches = tuple(_with_figures(status, judgements) for status in report.launches)
    return replace(report, findings=tuple(ordered), launches=launches)


def _with_opinions(finding: Finding, judgements: Iterable[Judgement]) -> Finding:
    key = finding_key(finding)
    verdicts = [each.opinions[key].as_data() for each in judgements if key in each.opinions]
    return replace(finding, data={**finding.data, "verdicts": verdicts}) if verdicts else finding


def _with_figures(status: LaunchStatus, judgements: Sequence[Judgement]) -> LaunchStatus:
    return replace(status, captures=tuple(_capture(capture, judgements) for capture in status.captures))


def _capture(capture: Capture, judgements: Sequence[Judgement]) -> Capture:
    """``resources["devices"]``: for each kind of GPU what became of the capture's programs there."""
    devices = []
    own = capture.resources.get("programs") or {}
    for judgement in judgements:
        entries = [{**own[d], **judgement.programs[d]} for d in own if d in judgement.programs]
        if entries:
            entry = max(entries, key=lambda each: each.get("compile_seconds") or 0.0)
            devices.append(_device(entry, judgement))
    if not devices:
        return capture
    compiled = any(device["state"] in COMPILED for device in devices) and capture.stage is Stage.LOWER
    resources = {**capture.resources, "devices": devices}
    return replace(capture, stage=Stage.CONFIRM if compiled else capture.stage, resources=resources)


def _device(entry: Mapping[str, Any], judgement: Judgement) -> dict[str, Any]:
    device = {"gpu": judgement.gpu, "computeCapability": judgement.compute_capability, **entry}
    found = occupancy(entry, judgement.compute_capability) if entry.get("state") in COMPILED else None
    return {**device, **found.as_data()} if found is not None else device
