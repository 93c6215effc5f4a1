"""docs/faults.md has every fault of the suite, and no other."""

from __future__ import annotations

import re
import sys

from jax_environments import PROJECT

sys.path.insert(0, str(PROJECT / "scripts"))

from fault_table import MODULES, PAGE, all_faults


def test_every_module_of_faults_is_in_the_table():
    assert sorted(MODULES) == sorted(path.stem for path in (PROJECT / "tests" / "faultsuite").glob("of_*.py"))


def test_the_page_has_every_fault():
    titles = [fault.title for faults in all_faults() for fault in faults.every]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = [(title, saw) for title, saw in rows if title != "fault"]
    assert [title for title, _ in shown] == titles, "run scripts/fault_table.py"
    assert not [title for title, saw in shown if saw == "not measured"]


def test_names_and_titles_are_taken_once():
    every = [fault for faults in all_faults() for fault in faults.every]
    assert len({fault.name for fault in every}) == len({fault.title for fault in every}) == len(every)
