"""What a group of drivers brought, in a form that holds for every layout of the text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from pallas_lsp.engine.codec import decode, encode
from pallas_lsp.engine.known_interpreters import stamp
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.model import Capture, DriverOutcome, Fault
from pallas_lsp.source.dependence import Group
from pallas_lsp.source.units import Places

Part = dict[str, Any]
"""JSON: captures, faults, drivers (by number in the group), ``layout`` where texts in it speak of lines, ``reads``."""

FORM = 2
"""Of parts, which are kept on the disk; another number where an older part would be misread."""
_FROZEN = "(place)"
"""The key of a place, which is no name of a fact."""
_SPEAKS_OF_LINES = re.compile(r"\blines? \d|\.py:\d|\.py\", line")
_ENDED = "stopped at "
"""How the outcome of a driver begins that went as far as a launch that has a fault (``worker/drivers``)."""


class NotKept(Exception):  # noqa: N818
    """This part cannot be kept: it holds for this run alone."""


def freeze(group: Group, outcome: Outcome) -> Part:
    """The part of an outcome that is a group's; raises NotKept."""
    numbers = {driver.id: number for number, driver in enumerate(group.drivers)}
    ended = {each.driver: each for each in outcome.drivers.values() if each.driver in numbers}
    if len(ended) < len(numbers):
        raise NotKept("a driver did not end")
    in_part = {driver.id: set(driver.lines) for driver in group.drivers if driver.kind == "main" and driver.lines}
    if any(each.mode == "concrete" or not _complete(each, each.driver in in_part) for each in ended.values()):
        raise NotKept("a driver ended with an exception of its own, or was run with values")
    freezer = _Freezer(group)

    def belongs(driver: str, capture: Capture | None) -> bool:
        if driver in in_part:
            return capture is not None and capture.part in in_part[driver]
        return driver in numbers

    captures = [each for each in outcome.captures.values() if belongs(each.driver, each)]
    faults = [
        each for each in outcome.faults.values() if belongs(each.driver, outcome.captures.get(each.capture or ""))
    ]
    part: Part = {
        "captures": [
            freezer.value({**encode(each), "driver": numbers[each.driver], "part": None}) for each in captures
        ],
        "faults": [freezer.value({**encode(each), "driver": numbers[each.driver]}) for each in faults],
        "drivers": [freezer.value({**encode(each), "driver": numbers[each.driver]}) for each in ended.values()],
        "reads": _stamps(outcome.reads),
    }
    if freezer.speaks_of_lines:
        part["layout"] = layout(group)
    return part


def thaw(group: Group, part: Part) -> Outcome | None:
    """The outcome for the text as it is now; None where it does not hold for it, or was damaged on the disk."""
    try:
        return _thawed_outcome(group, part)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def _thawed_outcome(group: Group, part: Part) -> Outcome | None:
    if part.get("layout", "") not in ("", layout(group)) or _stamps(part["reads"]) != part["reads"]:
        return None
    places = Places(group.units)
    outcome = Outcome()

    def back(value: Any) -> dict[str, Any]:
        fields: dict[str, Any] = _thawed(value, places)
        return {**fields, "driver": group.drivers[fields["driver"]].id}

    for each in part["captures"]:
        capture = decode(back(each), Capture)
        outcome.captures[capture.id] = capture
    for each in part["faults"]:
        fault = decode(back(each), Fault)
        outcome.faults[fault.id] = fault
    for each in part["drivers"]:
        ended = decode(back(each), DriverOutcome)
        outcome.drivers[ended.driver] = ended
    outcome.stage = "lower"
    return outcome


def layout(group: Group) -> str:
    """A digest of where the tokens of a group stand."""
    digest = hashlib.sha256()
    for unit in group.units:
        digest.update(repr((unit.path, unit.line, unit.tokens.starts)).encode())
    return digest.hexdigest()


def _complete(ended: DriverOutcome, in_part: bool) -> bool:
    """Whether a driver went as far as it can; where its statements are for themselves, past all of them."""
    return ended.finished or (not in_part and ended.error.startswith(_ENDED))


class _Freezer:
    def __init__(self, group: Group) -> None:
        self._places = Places(group.units)
        self._divided = {unit.path for unit in group.units}
        self.speaks_of_lines = False

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            self.speaks_of_lines = self.speaks_of_lines or _SPEAKS_OF_LINES.search(value) is not None
            return value
        if isinstance(value, Mapping):
            path, line = value.get("path"), value.get("line")
            if isinstance(path, str) and isinstance(line, int) and path in self._divided:
                return self._place(path, line, value)
            return {key: self.value(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def _place(self, path: str, line: int, value: Mapping[str, Any]) -> dict[str, Any]:
        start = self._places.freeze(path, line, value.get("column"))
        if start is None:
            raise NotKept(f"{path}:{line} belongs to nothing that the drivers depend on")
        frozen: dict[str, Any] = {_FROZEN: [start, None]}
        if value.get("end_line") is not None:
            end = self._places.freeze(path, value["end_line"], value.get("end_column"), end=True)
            if end is None:
                raise NotKept(f"{path}:{value['end_line']} belongs to nothing that the drivers depend on")
            frozen[_FROZEN] = [start, end]
        rest = {k: v for k, v in value.items() if k not in ("line", "column", "end_line", "end_column")}
        return {**{key: self.value(each) for key, each in rest.items()}, **frozen}


def _thawed(value: Any, places: Places) -> Any:
    if isinstance(value, Mapping):
        fields = {key: _thawed(each, places) for key, each in value.items() if key != _FROZEN}
        if _FROZEN in value:
            start, end = value[_FROZEN]
            line, column = places.thaw(tuple(start))
            fields["line"] = line
            if column is not None:
                fields["column"] = column
            if end is not None:
                fields["end_line"], fields["end_column"] = places.thaw(tuple(end))
        return fields
    if isinstance(value, list):
        return [_thawed(each, places) for each in value]
    return value


def _stamps(paths: Any) -> dict[str, list[int]]:
    """What tells whether files are what they were."""
    return {path: stamp(path) for path in sorted(paths)}
