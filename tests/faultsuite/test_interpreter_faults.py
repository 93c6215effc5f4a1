"""Each fault of an interpreter or its packages, tried."""

from __future__ import annotations

import of_interpreters
import pytest
from suite import Fault, keep, play


@pytest.fixture(scope="module")
def editor(editors):
    return editors({})


@pytest.mark.parametrize("fault", of_interpreters.FAULTS.every, ids=lambda fault: fault.name)
def test_fault(fault: Fault, editor, scenes):
    keep(play(fault, scenes(editor, fault)))
