"""For each launch of a file: the captures that reached it, or the reason why none did."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from pallas_lsp.engine.outcome import Failure, Outcome
from pallas_lsp.model import (
    Capture,
    Driver,
    DriverOutcome,
    Fault,
    Frame,
    Launch,
    LaunchStatus,
    Location,
    Position,
    Problem,
    Range,
)
from pallas_lsp.origins import assumed, listed, subject, without_target
from pallas_lsp.source.positions import Lines
from pallas_lsp.source.syntax import parse

NO_DRIVER = "nothing in this file, and no test or script that imports it, calls it with argument types"
_SEEN = "it failed while it was built; see its finding"


def statuses(
    path: str, lines: Lines, launches: Sequence[Launch], drivers: Sequence[Driver], outcome: Outcome
) -> tuple[LaunchStatus, ...]:
    """The launches that were found by reading, then those that only running found (some may be in other files)."""
    reached: dict[int, list[Capture]] = {}
    unread: dict[tuple[str, int], list[Capture]] = {}
    for capture in _distinct(outcome.captures.values()):
        if capture.launch is None:
            continue
        number = _launch_of(path, lines, launches, capture.launch)
        if number is not None:
            reached.setdefault(number, []).append(capture)
        else:
            unread.setdefault((capture.launch.path, capture.launch.line), []).append(capture)
    found = []
    for number, launch in enumerate(launches):
        captures = tuple(reached.get(number, ()))
        reason = _why_assumed(captures, drivers, outcome) if captures else _reason(launch, drivers, outcome)
        remedy = remedy_for(lines.text, launch) if reason and reason != _SEEN and not captures else ""
        found.append(LaunchStatus(launch, captures, reason, remedy))
    for captures_ in unread.values():
        frame = captures_[0].launch
        assert frame is not None
        body = captures_[0].body.name if captures_[0].body is not None else None
        launch = Launch(_location(path, lines, frame), captures_[0].api, captures_[0].backend, body)
        found.append(LaunchStatus(launch, tuple(captures_)))
    return tuple(found)


def _distinct(captures: Iterable[Capture]) -> list[Capture]:
    """The captures but for those that a test only brought again when it was run for another GPU."""
    every = list(captures)
    first = {_what(capture) for capture in every if capture.driver == without_target(capture.driver)}
    return [each for each in every if each.driver == without_target(each.driver) or _what(each) not in first]


def _what(capture: Capture) -> tuple[object, ...]:
    places = (capture.launch, capture.call, capture.body, capture.entry)
    return (*places, without_target(capture.driver), capture.arguments, capture.targets, capture.stage)


def remedy_for(text: str, launch: Launch) -> str:
    """What to do about a launch that nothing reaches."""
    line = launch.location.range.start.line + 1
    body = parse(text).tree.body
    around = [each for each in body if isinstance(each, ast.FunctionDef) and each.lineno <= line <= _last(each)]
    if not around:
        return "Call it from a test or a main block."
    name = around[0].name
    return (
        f"Call `{name}` from a test or a main block, or say its argument types in a comment above it, "
        f"for example `# pallas: {name}(bf16[512,256])`."
    )


def _last(node: ast.FunctionDef) -> int:
    return node.end_lineno or node.lineno


def _launch_of(path: str, lines: Lines, launches: Sequence[Launch], frame: Frame) -> int | None:
    """The number of the innermost launch around a frame."""
    if frame.path != path:
        return None
    around = []
    start = lines.from_bytes(frame.line - 1, frame.column) if frame.column is not None else None
    for number, launch in enumerate(launches):
        own = launch.location.range
        if own.start.line <= frame.line - 1 <= own.end.line:
            # Of several on the same lines, the one that starts where the frame does.
            around.append((start != own.start, own.end.line - own.start.line, number))
    return min(around)[2] if around else None


def _location(path: str, lines: Lines, frame: Frame) -> Location:
    range_ = (lines.frame_range(frame) or lines.line_range(frame.line - 1)) if frame.path == path else None
    if range_ is None:
        start = Position(frame.line - 1, 0)
        range_ = Range(start, start)
    return Location(frame.path, range_)


def _reason(launch: Launch, drivers: Sequence[Driver], outcome: Outcome) -> str:
    if not drivers:
        return NO_DRIVER
    if any(_passes(fault, launch) for fault in outcome.faults.values()):
        return _SEEN
    for failure in outcome.failures:
        if failure.capture is None:
            return f"{subject(failure.driver or 'module')} did not get there: {failure.error.message}"
    # What stopped says more than what ran to its end elsewhere, and a test says more than a guess.
    known = [driver for driver in drivers if not assumed(driver.id)] or drivers
    stopped = [ended for ended in outcome.drivers.values() if ended.error]
    stopped = [ended for ended in stopped if known is drivers or not assumed(ended.driver)]
    if stopped:
        return _stopped(stopped[0], drivers)
    return f"{listed(subject(driver.id) for driver in known)} ran to the end without reaching it"


def _why_assumed(captures: Sequence[Capture], drivers: Sequence[Driver], outcome: Outcome) -> str:
    """What stopped a driver with types of its own, where a launch was reached with assumed ones only."""
    if not all(assumed(capture.driver) for capture in captures):
        return ""
    stopped = [ended for ended in outcome.drivers.values() if ended.error and not assumed(ended.driver)]
    return _stopped(stopped[0], drivers) if stopped else ""


def _stopped(ended: DriverOutcome, drivers: Sequence[Driver], target: str = "it") -> str:
    where = f" on line {ended.frame.line}" if ended.frame is not None else ""
    if ended.frame is not None and ended.frame.path not in {driver.path for driver in drivers}:
        where += f" of {ended.frame.path}"
    return f"{subject(ended.driver)} stopped{where} before reaching {target}: {ended.error}"


def stopped_problems(path: str, lines: Lines, drivers: Sequence[Driver], outcome: Outcome) -> list[Problem]:
    """What kept the drivers of a file without launches of its own from those in the files that it imports."""
    if outcome.captures or outcome.faults:
        return []
    found: dict[tuple[str, Frame | None], Problem] = {}
    for ended in outcome.drivers.values():
        if ended.error and (ended.error, ended.frame) not in found:
            message = _stopped(ended, drivers, "a kernel")
            where = _location(path, lines, ended.frame or Frame(path, 1))
            remedy = "Make it run without errors up to the kernel, or check the file of the kernel by itself."
            found[ended.error, ended.frame] = Problem("driver-stopped", message, remedy, where)
    return list(found.values())


def _passes(fault: Fault, launch: Launch) -> bool:
    own = launch.location.range
    return any(
        frame.path == launch.location.path and own.start.line <= frame.line - 1 <= own.end.line
        for frames in (fault.frames, *(anchor.frames for anchor in fault.anchors))
        for frame in frames
    )


def problem_of(failure: Failure, path: str, where: Location | None) -> Problem:
    """What a run's death is to the user."""
    error = failure.error
    if failure.capture is not None:
        name = failure.capture.body.name if failure.capture.body is not None else failure.capture.api
        doing = f"lowering the kernel {name} for ({failure.capture.arguments})"
    else:
        doing = f"running {subject(failure.driver)}" if failure.driver else "importing the file"
    messages = {
        "timed-out": (
            f"{doing} {error.message}",
            "It is tried again when the text changes. Make it shorter, or raise the limit in the settings.",
        ),
        "out-of-memory": (
            f"{doing} needed more memory than a check may use",
            "It is tried again when the text changes. Use smaller arrays there, or raise the limit in the settings.",
        ),
        "crashed": (
            f"{doing} crashed the process: it {error.message}",
            "It is tried again when the text changes. The log has the traceback of the crash.",
        ),
        "exited": (
            f"{doing} ended the process: it {error.message}",
            "Keep os._exit and the like out of what a check runs (the top level, the main block, tests).",
        ),
        "no-folder": (
            f"{doing} {error.message}",
            "Make room there, or name another folder as TMPDIR in the setting 'environment'.",
        ),
        "internal-error": (
            f"{doing} failed through a fault of Pallas LSP: {error.message}",
            "Please report it, with the log and the file if you may share them.",
        ),
    }
    message, remedy = messages.get(error.kind, (f"{doing} was ended: {error.message}", "Check the file again."))
    return Problem(error.kind, message, remedy, where or Location(path, Range(Position(0, 0), Position(0, 0))))
