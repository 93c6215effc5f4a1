"""Each fault of sessions with several workspace folders, tried."""

from __future__ import annotations

import of_workspaces
import pytest
from suite import Fault, keep, play


@pytest.fixture(scope="module")
def editor(editors):
    return editors({}, "second workspace")


@pytest.mark.parametrize("fault", of_workspaces.FAULTS.every, ids=lambda fault: fault.name)
def test_fault(fault: Fault, editor, scenes):
    keep(play(fault, scenes(editor, fault)))
