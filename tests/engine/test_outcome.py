"""What the runs of one check brought."""

from __future__ import annotations

from pallas_lsp.engine.outcome import Outcome
from pallas_lsp.model import Backend, Capture, Driver, Fault, Stage

DRIVERS = tuple(Driver(name, "test", "/a.py", name) for name in ("first", "second", "third"))


def test_facts_are_in_the_order_of_the_drivers_whichever_ran_now() -> None:
    outcome = Outcome()
    for number, (driver, stage) in enumerate(
        [("third", Stage.TRACE), ("first", Stage.LOWER), ("other", Stage.TRACE), ("first", Stage.TRACE)]
    ):
        capture = Capture(f"c{number}", "pl.pallas_call", Backend.ANY, driver, "f32[8]")
        outcome.captures[capture.id] = capture
        outcome.faults[f"f{number}"] = Fault(f"f{number}", stage, "ValueError", "", driver)
    outcome.in_order(DRIVERS)
    assert list(outcome.captures) == ["c1", "c3", "c0", "c2"]
    assert list(outcome.faults) == ["f3", "f0", "f2", "f1"]
