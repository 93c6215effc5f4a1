"""Each fault of the code that is checked, tried."""

from __future__ import annotations

import of_user_code
import pytest
from suite import Fault, keep, play


@pytest.fixture(scope="module")
def editor(editors):
    return editors(of_user_code.SETTINGS)


@pytest.mark.parametrize("fault", of_user_code.FAULTS.every, ids=lambda fault: fault.name)
def test_fault(fault: Fault, editor, scenes):
    keep(play(fault, scenes(editor, fault)))
