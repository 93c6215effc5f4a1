"""Each sudden end, tried."""

from __future__ import annotations

import of_the_end
import pytest
from suite import RECOVERY_SECONDS, Fault, Observation, keep, slack


@pytest.fixture
def start(tmp_path, newest_jax_python):
    sessions: list[of_the_end.Session] = []

    def begin(**how) -> of_the_end.Session:
        sessions.append(of_the_end.Session(tmp_path, newest_jax_python.python, **how))
        return sessions[-1]

    yield begin
    for session in sessions:
        session.end()


@pytest.mark.parametrize("fault", of_the_end.FAULTS.every, ids=lambda fault: fault.name)
def test_fault(fault: Fault, start):
    seconds = fault.drive(start)
    assert seconds < RECOVERY_SECONDS * slack(), f"the last process ended after {seconds:.2f} s"
    keep(Observation(fault.name, "", None, seconds))
