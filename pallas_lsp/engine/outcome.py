"""What the runs of one check brought, as it arrives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pallas_lsp.engine.codec import decode
from pallas_lsp.engine.errors import RunFailed
from pallas_lsp.model import Capture, Driver, DriverOutcome, Fault, Stage

NOT_NEEDED = "not needed"
"""The mode of a driver that was left out, because others had reached what it may reach."""


@dataclass(frozen=True)
class Failure:
    """A run that did not come to its end: why, and in which driver and capture (None: in the file's top level)."""

    error: RunFailed
    driver: str | None
    capture: Capture | None = None


@dataclass
class Outcome:
    """Facts by id.  ``failures`` are runs that were ended before they were done."""

    captures: dict[str, Capture] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    drivers: dict[str, DriverOutcome] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    stage: str = ""
    driver: str | None = None
    capture: str | None = None
    device: dict[str, Any] | None = None
    """Which GPU a confirmation ran on, ``{"gpu", "reason"}``."""
    reads: set[str] = field(default_factory=set)
    """The user's files that were read besides the checked one and the open ones."""

    @property
    def died_in_import(self) -> bool:
        """Whether the file's top level ended the run: whatever else imports it would meet the same end."""
        return any(failure.driver is None and failure.capture is None for failure in self.failures)

    def receive(self, method: str, fields: dict[str, Any]) -> None:
        """Take a notification of the worker; raises ValueError for one that is malformed."""
        if method == "capture":
            capture = decode(fields["capture"], Capture)
            self.captures[capture.id] = capture
        elif method == "fault":
            fault = decode(fields["fault"], Fault)
            self.faults[fault.id] = fault
        elif method == "driver":
            outcome = decode(fields["outcome"], DriverOutcome)
            self.drivers[outcome.driver] = outcome
        elif method == "device":
            self.device = dict(fields)
        elif method == "read":
            self.reads.update(map(str, fields.get("paths") or ()))
        elif method == "stage":
            self.stage = str(fields.get("stage") or "")
            self.driver, self.capture = fields.get("driver"), fields.get("capture")

    def driven(self, drivers: Iterable[Driver]) -> bool:
        """Whether all drivers ended: every launch that they reach was traced."""
        return all(driver.id in self.drivers for driver in drivers)

    def keep(self, earlier: Outcome, drivers: set[str], attempt: int | str) -> None:
        """Take over what an earlier run told of drivers that this one does not run; an id is of one run, so rename."""

        def renamed(identifier: str) -> str:
            return f"{identifier}~{attempt}"

        for capture in earlier.captures.values():
            if capture.driver in drivers:
                self.captures[renamed(capture.id)] = replace(capture, id=renamed(capture.id))
        for fault in earlier.faults.values():
            if fault.driver in drivers:
                own = renamed(fault.capture) if fault.capture is not None else None
                self.faults[renamed(fault.id)] = replace(fault, id=renamed(fault.id), capture=own)
        for driver, ended in earlier.drivers.items():
            if driver in drivers:
                self.drivers.setdefault(driver, ended)

    def after(self, earlier: Outcome, attempt: str) -> Outcome:
        """This run's facts together with those of the runs before it; what ran again counts as it ran now."""
        again = {driver for driver, ended in self.drivers.items() if ended.mode != NOT_NEEDED}
        self.keep(earlier, set(earlier.drivers) - again, attempt)
        self.failures = [*earlier.failures, *self.failures]
        return self

    def in_order(self, drivers: Iterable[Driver]) -> Outcome:
        """The facts in the order of the drivers, whichever of them were run now: of findings that are alike, what the
        first says is shown."""
        order = {driver.id: number for number, driver in enumerate(drivers)}
        stages = list(Stage)

        def place(fact: Capture | Fault) -> tuple[int, int]:
            return stages.index(fact.stage) if isinstance(fact, Fault) else 0, order.get(fact.driver, len(order))

        self.captures = dict(sorted(self.captures.items(), key=lambda each: place(each[1])))
        self.faults = dict(sorted(self.faults.items(), key=lambda each: place(each[1])))
        return self

    @property
    def reached(self) -> Stage:
        return Stage.LOWER if self.stage.startswith("lower") else Stage.TRACE
