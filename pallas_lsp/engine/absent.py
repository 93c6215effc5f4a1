"""Packages that drivers miss: a last resort is to run them once more with stand-ins.  What that brings is assumed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pallas_lsp.engine.elsewhere import unreached
from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.model import Driver, Launch, Snapshot
from pallas_lsp.origins import STAND_INS
from pallas_lsp.source.workspace import resolve

MOST_ROUNDS = 4
"""A package that is missing may hide another."""
_MISSING = re.compile(r"No module named '(?P<imported>\w+)|could not import '(?P<skipped>\w+)")
_NEVER = frozenset({"jax", "jaxlib", "numpy", "pytest"})

Run = Callable[[tuple[Driver, ...], tuple[str, ...]], Awaitable[Outcome]]
"""Runs drivers with stand-ins for packages."""


async def with_stand_ins(
    snapshot: Snapshot, path: str, launches: Sequence[Launch], drivers: Sequence[Driver], outcome: Outcome, run: Run
) -> tuple[tuple[Driver, ...], Outcome]:
    """Run the drivers again that stopped for want of a package; returns them, and what all brought."""
    ran: dict[str, Driver] = {}
    names: set[str] = set()
    known = {driver.id: driver for driver in drivers if driver.kind != "script"}
    for number in range(MOST_ROUNDS):
        stopped = {
            identifier: name
            for identifier, ended in outcome.drivers.items()
            if (name := _package(snapshot, path, ended.error)) and identifier.removeprefix(STAND_INS) in known
        }
        if not unreached(launches, outcome) or names.issuperset(stopped.values()):
            break
        names.update(stopped.values())
        for identifier in stopped:
            driver = known[identifier.removeprefix(STAND_INS)]
            ran.setdefault(driver.id, replace(driver, id=f"{STAND_INS}{driver.id}"))
        outcome = (await run(tuple(ran.values()), tuple(sorted(names)))).after(outcome, f"stand-ins{number}")
    return tuple(ran.values()), outcome


def _package(snapshot: Snapshot, path: str, error: str) -> str:
    """The installed package that an exception's text misses; empty where it misses none, or one of the workspace."""
    match = _MISSING.search(error)
    name = (match["imported"] or match["skipped"]) if match is not None else ""
    own = [Path(root, *below, name) for root in snapshot.roots for below in ((), ("src",))]
    if name in _NEVER or resolve(snapshot, path, name) or (name and any(folder.is_dir() for folder in own)):
        return ""
    return name
