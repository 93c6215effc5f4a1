"""Which drivers a check has to run, and what is known of the others from an earlier check of what they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
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
    """``known``: what the group of drivers brings, where it need not run."""

    group: Group
    key: str
    known: Outcome | None


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
        return [
            (part.known, {driver.id for driver in part.group.drivers})
            for part in self.parts
            if part.known is not None and again.isdisjoint(driver.id for driver in part.group.drivers)
        ]

    def anew(self, drivers: tuple[Driver, ...]) -> Plan:
        """The same, with all of the drivers to run."""
        return Plan(tuple(replace(part, known=None) for part in self.parts), drivers)

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
        parts.append(Planned(group, key, thaw(group, part) if part is not None else None))
    missing = {driver.id for part in parts if part.known is None for driver in part.group.drivers}
    if missing:  # the top level is executed whenever anything is
        missing |= {d.id for p in parts for d in p.group.drivers if any(d.kind == "module" for d in p.group.drivers)}
    return Plan(tuple(parts), tuple(driver for driver in drivers if driver.id in missing))


def keep(kept: Kept, done: Plan, outcome: Outcome, log: Callable[[str], object] | Log) -> None:
    """Keep what a run brought that came to its end."""
    ran = {driver.id for driver in done.drivers}
    grouped = {driver.id for part in done.parts for driver in part.group.drivers}
    seen = {capture.driver for capture in outcome.captures.values()}
    seen |= {fault.driver for fault in outcome.faults.values()}
    if outcome.failures or not seen <= grouped:
        return
    for part in done.parts:
        if any(driver.id in ran for driver in part.group.drivers):
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
