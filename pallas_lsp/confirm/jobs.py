"""What a confirmer is asked and answers, and what the end of a process says of the kernel that it was at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.engine.errors import RunFailed
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.model import Anchor, Capture, Driver, Fault, Snapshot, Stage

LAUNCH_TIMED_OUT = "pallas_lsp.LaunchTimedOut"
COMPILER_CRASHED = "pallas_lsp.CompilerCrashed"

UNFINISHED = ("running", "launching")
"""States of a program that its process did not come to the end of."""


@dataclass(frozen=True)
class Job:
    """One file's kernels.  ``known``: the digests of programs whose fate is known; ``key`` names the texts."""

    python: str
    snapshot: Snapshot
    path: str
    drivers: tuple[Driver, ...]
    texts: Mapping[str, str]
    targets: Mapping[str, tuple[str, ...]]
    key: str
    known: frozenset[str] = frozenset()
    launch: bool = False


@dataclass
class Answer:
    """``state``: ``done``; ``no GPU``, ``busy``, ``unreachable`` or ``failed`` with the reason in ``detail``.

    ``programs``: what became of each program, by its digest.
    """

    state: str
    detail: str = ""
    outcome: Outcome = field(default_factory=Outcome)
    programs: dict[str, dict[str, Any]] = field(default_factory=dict)
    gpu: dict[str, Any] = field(default_factory=dict)


def take(answer: Answer, outcome: Outcome) -> None:
    """Add what a run brought to what earlier runs of the same job did; ids are the same in both."""
    answer.outcome.captures.update(outcome.captures)
    answer.outcome.drivers.update(outcome.drivers)
    answer.outcome.faults.update({f"{number}": fault for number, fault in _numbered(answer.outcome, outcome)})
    answer.outcome.device = outcome.device or answer.outcome.device
    answer.gpu = (outcome.device or {}).get("gpu") or answer.gpu
    for capture in outcome.captures.values():
        for digest, entry in (capture.resources.get("programs") or {}).items():
            if entry.get("state") not in (*UNFINISHED, "known"):
                answer.programs[digest] = dict(entry)


def _numbered(before: Outcome, outcome: Outcome) -> list[tuple[str, Fault]]:
    """The faults that earlier runs did not tell, under ids that they did not use."""
    told = {(fault.capture, fault.stage, fault.message, fault.anchors[:1]) for fault in before.faults.values()}
    found: list[tuple[str, Fault]] = []
    for fault in outcome.faults.values():
        if (fault.capture, fault.stage, fault.message, fault.anchors[:1]) not in told:
            number = f"{fault.id}~{len(before.faults) + len(found)}"
            found.append((number, replace(fault, id=number)))
    return found


def end_of(failure: RunFailed, stage: str, settings: ConfirmSettings) -> dict[str, Any]:
    if failure.kind == "timed-out":
        seconds = settings.seconds if stage == "confirm" else settings.launch_seconds
        return {"state": "timed out" if stage == "confirm" else "launch timed out", "seconds": seconds}
    return {"state": "crashed" if stage == "confirm" else "launch failed", "detail": failure.message}


def fault_of(failure: RunFailed, stage: str, capture: Capture, settings: ConfirmSettings) -> Fault | None:
    """What the end of a process says of the kernel that it was at; None where it says nothing."""
    if failure.kind == "timed-out" and stage == "launch":
        return _fault(capture, LAUNCH_TIMED_OUT, f"the kernel did not end within {settings.launch_seconds:g} s")
    if failure.kind == "crashed" and stage == "confirm":
        return crash_of(capture, failure.message)
    return None


def crash_of(capture: Capture, how: str) -> Fault:
    """The compiler's crash at a kernel, ``how`` in words."""
    return _fault(capture, COMPILER_CRASHED, f"the GPU's compiler was {how}")


def _fault(capture: Capture, exception: str, message: str) -> Fault:
    places = tuple(frame for frame in (capture.launch, capture.call) if frame is not None)
    return Fault(
        id=f"{capture.id}-{exception}",
        stage=Stage.CONFIRM,
        exception=exception,
        message=message,
        driver=capture.driver,
        anchors=(Anchor("launch", places[:1]),) if places else (),
        capture=capture.id,
    )
