"""Where a kernel's argument types come from, in words: the one place that says it, for reports, tables and editors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

_TARGET = re.compile(r"@[\w.]+$")
"""What follows a test's id where it was run for another GPU."""

Shown = Callable[[str], str]
"""How a path is shown."""

STAND_INS = "stub:"
"""How the ids of drivers begin that ran with stand-ins for packages that are not installed."""
_WITH_STAND_INS = " with stand-ins for absent packages"
_SOURCES = {"guess": "assumed", "stub": "assumed", "comment": "comment", "record": "recorded", "module": "top level"}
_WORDS = {
    "main": "the main block",
    "module": "the file's top level",
    "comment": "a shape comment",
    "record": "a recorded run",
}


UNREACHED = "nothing calls it with argument types"
"""Why a launch was not reached, where no more is known."""


def assumed(driver: str) -> bool:
    """Whether what a driver brought may be another's fault than the kernel's: its types or a package are made up."""
    return driver.startswith(("guess:", STAND_INS))


def source(driver: str, shown: Shown = os.path.basename) -> str:
    """What programs read: ``assumed``, ``comment``, ``recorded``, or the driver (``tests/test_x.py::test_y``)."""
    kind = driver.partition(":")[0]
    return _SOURCES.get(kind) or words(driver, shown).removeprefix("the ")


def words(driver: str, shown: Shown = os.path.basename) -> str:
    """What people read behind "from": ``the main block``, ``tests/test_x.py::test_y``."""
    kind, _, rest = driver.partition(":")
    if driver.startswith(STAND_INS):
        return words(rest, shown) + _WITH_STAND_INS
    if kind == "pytest":
        path, _, name = without_target(rest).rpartition("::")
        return f"{shown(path)}::{name.replace('.', '::')}"
    if kind == "script":
        return shown(rest.rpartition(":")[0])
    if kind == "test":
        return f"the test {rest}"
    if kind == "guess":
        return f"types assumed for {rest}"
    return _WORDS.get(kind, driver)


def without_target(driver: str) -> str:
    """A driver's id without the GPU that a test was run for once more."""
    return _TARGET.sub("", driver)


def subject(driver: str) -> str:
    """A driver as the subject of a sentence: ``the test test_x.py::test_y``."""
    if driver.startswith(STAND_INS):
        return subject(driver.removeprefix(STAND_INS)) + _WITH_STAND_INS
    kind = {"pytest": "the test ", "script": "the script "}.get(driver.partition(":")[0], "")
    return kind + ("a call with " if driver.startswith("guess:") else "") + words(driver)


def with_types(arguments: str, driver: str, shown: Shown, code: Callable[[str], str] = str) -> str:
    """What people read behind "with": ``bf16[512,256] from tests/test_x.py::test_y``, ``assumed f32[256,256]``."""
    types = code(arguments) if arguments else "no arguments"
    if driver.startswith("guess:"):
        return f"assumed {types}" if arguments else "no arguments, assumed"
    if assumed(driver):
        return f"assumed {types} from {words(driver, shown)}"
    return f"{types} from {words(driver, shown)}"


def shown_path(path: str, folder: str) -> str:
    """Relative to a folder that it lies in, with forward slashes; else as it is."""
    for base in (folder, os.path.realpath(folder)):
        try:
            relative = os.path.relpath(path, base)
        except ValueError:  # another drive
            break
        if not relative.startswith(os.pardir):
            return relative.replace(os.sep, "/")
    return path.replace(os.sep, "/")


def listed(names: Iterable[str]) -> str:
    """``a, b and c``; of more than four the first three."""
    shown = list(names)
    if len(shown) > 4:
        shown = [*shown[:3], f"{len(shown) - 3} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
