"""Each fault of a disk, tried."""

from __future__ import annotations

import of_disks
import pytest
from suite import Fault, keep, play


@pytest.fixture(scope="module")
def editor(editors, tmp_path_factory):
    disk = of_disks.Disk.mount(tmp_path_factory.mktemp("disk"))
    temporary = disk.folder / "tmp"
    temporary.mkdir()
    try:
        yield editors({}, home=disk.folder, variables={"TMPDIR": str(temporary)})
    finally:
        disk.end()


@pytest.mark.parametrize("fault", of_disks.FAULTS.every, ids=lambda fault: fault.name)
def test_fault(fault: Fault, editor, scenes):
    keep(play(fault, scenes(editor, fault)))
