"""Which drivers a check has to run, and what is known of the others from an earlier check of what they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pallas_lsp.engine.kept import Kept
from pallas_lsp.engine.log import Log
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.engine.parts import FORM, NotKept, freeze, thaw
from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.dependence import Group, groups
from pallas_lsp.source.units import NoUnits
from pallas_lsp.source.workspace import imported_files, read_text

_DEVICE_WORDS = re.compile(r"pallas\.tpu|import tpu|pltpu|mosaic_gpu|plgpu|triton|tcgen05|tpu_?v?7|v7x?", re.IGNORECASE)
"""By which the worker chooses the device that a file runs on, wherever they stand in it."""


@dataclass(frozen=True)
class Planned:
    """``known``: what the group of drivers brought in an earlier run.  ``run``: whether it has to run all the same."""

    group: Group
    key: str
    known: Outcome | None
    run: bool


@dataclass(frozen=True)
class Plan:
    """``parts`` are none where nothing can be kept of the run."""

    parts: tuple[Planned, ...]
    drivers: tuple[Driver, ...]
    """Those that have to run."""

    @property
    def known(self) -> list[tuple[Outcome, set[str]]]:
        """What need not run, with the ids of its drivers."""
        again = {driver.id for driver in self.drivers}
        found = []
        for part in self.parts:
            if part.known is not None and not part.run:
                ended = {name: each for name, each in part.known.drivers.items() if name not in again}
                outcome = replace(part.known, drivers=ended)
                found.append((outcome, {driver.id for driver in part.group.drivers}))
        return found

    def entire(self, drivers: tuple[Driver, ...]) -> Plan:
        """The same, with nothing left out of a main block."""
        mains = [any(driver.kind == "main" for driver in part.group.drivers) for part in self.parts]
        parts = tuple(replace(part, run=part.run or main) for part, main in zip(self.parts, mains, strict=True))
        return Plan(parts, tuple(_to_run(parts, drivers)))

    @property
    def divided(self) -> set[str]:
        """The ids of main blocks whose statements are for themselves."""
        return {d.id for part in self.parts for d in part.group.drivers if d.kind == "main" and d.lines}

    def cut_short(self, outcome: Outcome) -> bool:
        """Whether a divided main block stopped: what comes after that is not reached."""
        return any(not ended.finished for ended in outcome.drivers.values() if ended.driver in self.divided)

    def anew(self, drivers: tuple[Driver, ...]) -> Plan:
        """The same, with all of the drivers to run."""
        return Plan(tuple(replace(part, known=None, run=True) for part in self.parts), drivers)

    def reached(self, path: str) -> set[int]:
        """The lines of the file's launches that are reached by what need not run."""
        captures = [capture for outcome, _ in self.known for capture in outcome.captures.values()]
        return {c.launch.line for c in captures if c.launch is not None and c.launch.path == path}


def plan(
    kept: Kept,
    snapshot: Snapshot,
    path: str,
    drivers: tuple[Driver, ...],
    texts: Mapping[str, str],
    surroundings: Sequence[object],
) -> Plan:
    """``surroundings``: what else the results depend on (the interpreter, settings)."""
    try:
        found = groups(snapshot, path, {**texts, **_of_drivers(snapshot, drivers)}, drivers)
    except (NoUnits, OSError):
        return Plan((), drivers)
    text = texts.get(path, "")
    words = sorted({word.lower() for word in _DEVICE_WORDS.findall(text)})
    about = repr((FORM, path, snapshot.roots, words, *surroundings)).encode("utf-8", "backslashreplace")
    parts = []
    for group in found:
        key = hashlib.sha256(about + group.digest.encode()).hexdigest()
        part = kept.get(key)
        known = thaw(group, part) if part is not None else None
        parts.append(Planned(group, key, known, run=known is None))
    if any(part.run for part in parts):  # the top level is executed whenever anything is
        top = [any(driver.kind == "module" for driver in part.group.drivers) for part in parts]
        parts = [replace(part, run=part.run or first) for part, first in zip(parts, top, strict=True)]
    return Plan(tuple(parts), tuple(_to_run(parts, drivers)))


def _to_run(parts: Sequence[Planned], drivers: Sequence[Driver]) -> Iterator[Driver]:
    """The drivers of the parts that have to run; of a main block without the statements of the others."""
    for driver in drivers:
        own = [(each, part.run) for part in parts for each in part.group.drivers if each.id == driver.id]
        if all(run for _, run in own):
            yield driver
        elif any(run for _, run in own):
            yield replace(driver, lines=tuple(line for each, run in own if not run for line in each.lines))


def keep(kept: Kept, done: Plan, outcome: Outcome, log: Callable[[str], object] | Log) -> None:
    """Keep what a run brought that came to its end."""
    grouped = {driver.id for part in done.parts for driver in part.group.drivers}
    seen = {capture.driver for capture in outcome.captures.values()}
    seen |= {fault.driver for fault in outcome.faults.values()}
    if outcome.failures or not seen <= grouped:
        return
    for part in done.parts:
        if part.run:
            try:
                kept.put(part.key, freeze(part.group, outcome))
            except NotKept as reason:
                log(f"the results of {', '.join(driver.id for driver in part.group.drivers)} are not kept: {reason}")


def _of_drivers(snapshot: Snapshot, drivers: Sequence[Driver]) -> dict[str, str]:
    """The texts of drivers in other files, of what these import, and of the ``conftest.py`` around them."""
    found: dict[str, str] = {}
    for path in {driver.path for driver in drivers if driver.kind == "pytest"}:
        around = [str(folder / "conftest.py") for folder in Path(path).parents]
        for file in (path, *around):
            with contextlib.suppress(OSError, ValueError, SyntaxError):
                text = read_text(snapshot, file)
                found |= {file: text, **imported_files(snapshot, file, text)}
    return found
