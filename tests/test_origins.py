"""Where argument types come from, in the words of every report."""

from __future__ import annotations

import pytest

from pallas_lsp.origins import source, subject, with_types, words

DRIVERS = {
    "main": ("main block", "the main block", "the main block"),
    "module": ("top level", "the file's top level", "the file's top level"),
    "test:Case.test_a": ("test Case.test_a", "the test Case.test_a", "the test Case.test_a"),
    "comment:12": ("comment", "a shape comment", "a shape comment"),
    "record:3": ("recorded", "a recorded run", "a recorded run"),
    "guess:f": ("assumed", "types assumed for f", "a call with types assumed for f"),
    "pytest:/w/tests/test_x.py::Case.test_a": (
        "TESTS/test_x.py::Case::test_a",
        "TESTS/test_x.py::Case::test_a",
        "the test test_x.py::Case::test_a",
    ),
    "pytest:/w/tests/test_x.py::test_b@10.0": (
        "TESTS/test_x.py::test_b",
        "TESTS/test_x.py::test_b",
        "the test test_x.py::test_b",
    ),
    "script:/w/tests/run.py:main": ("TESTS/run.py", "TESTS/run.py", "the script run.py"),
}


def shown(path: str) -> str:
    return path.replace("/w/tests", "TESTS")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_in_words(driver: str) -> None:
    assert (source(driver, shown), words(driver, shown), subject(driver)) == DRIVERS[driver]


def test_types_and_where_they_come_from() -> None:
    assert with_types("f32[8]", "main", shown, "`{}`".format) == "`f32[8]` from the main block"
    assert with_types("f32[8]", "guess:f", shown) == "assumed f32[8]"
    assert with_types("", "comment:1", shown) == "no arguments from a shape comment"
