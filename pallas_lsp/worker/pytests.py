"""Tests of other files as drivers, run by the user's own pytest: its import mode, fixtures, conftest, parametrization.

Each test is evaluated abstractly, inside a trace; what it launches is found in the program of that trace.  Where the
user's environment has no pytest, unittest classes and plain functions are called as those of the checked file are.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import entries, module
from .session import Session

Attempt = Callable[[dict[str, Any], Callable[[], Any]], None]
"""Evaluates a call for a driver."""

_OPTIONS = (
    "--assert=plain",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "no:cov",
    "-p",
    "no:randomly",
    "-p",
    "no:timeout",
    "-p",
    "no:benchmark",
    "-o",
    "addopts=",
    "-q",
    "-s",
    "--no-header",
    "--disable-warnings",
    "--continue-on-collection-errors",
)


def run(session: Session, drivers: list[dict[str, Any]], roots: list[str], attempt: Attempt) -> None:
    """Run the tests that ``drivers`` (of kind ``pytest``, all of one file) name."""
    path = drivers[0]["path"]
    module.extend_path(path, roots)
    try:
        pytest: Any = importlib.import_module("pytest")
    except ImportError:
        _without_pytest(session, drivers, roots, attempt)
        return
    pytest.skip = _no_skip
    plugin = Plugin(session, drivers, attempt)
    _calm_hypothesis()
    with contextlib.chdir(_folder(path, roots)) if hasattr(contextlib, "chdir") else contextlib.nullcontext():
        pytest.main([*_OPTIONS, path], plugins=[plugin])
    for driver in drivers:
        if driver["id"] not in plugin.reached:
            reason = plugin.trouble or f"pytest finds no test {driver['name']} in {os.path.basename(path)}"
            session.tell_driver(entries.outcome(driver["id"], "abstract", reason))


def _folder(path: str, roots: list[str]) -> str:
    """Where the user would call pytest: the workspace folder."""
    return next((root for root in roots if path.startswith(root + os.sep)), os.path.dirname(path))


class Plugin:
    """A pytest plug-in.  Keeps the wanted tests and their first variants, and evaluates each through ``attempt``."""

    def __init__(self, session: Session, drivers: list[dict[str, Any]], attempt: Attempt) -> None:
        self._session = session
        self._drivers = {driver["name"]: driver for driver in drivers}
        self._attempt = attempt
        self.reached: set[str] = set()
        self.trouble = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        kept: dict[str, list[Any]] = {}
        for item in items:
            driver = self._of(item)
            if driver is not None and len(kept.setdefault(driver["id"], [])) < entries.MOST_VARIANTS:
                kept[driver["id"]].append(item)
                node = item
                while node is not None:
                    node.own_markers = [mark for mark in node.own_markers if mark.name not in ("skip", "skipif")]
                    node = node.parent
        items[:] = [item for group in kept.values() for item in group]

    def _of(self, item: Any) -> dict[str, Any] | None:
        owner = getattr(item, "cls", None)
        name = getattr(item, "originalname", None) or item.name.split("[")[0]
        full = f"{owner.__name__}.{name}" if owner is not None else name
        # absl's parameterized adds a suffix to a method's name for each parameter set.
        found = [known for known in self._drivers if full == known or full.startswith(known)]
        return self._drivers[max(found, key=len)] if found else None

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            lines = str(report.longrepr).strip().splitlines()
            self.trouble = lines[-1].removeprefix("E ").strip() if lines else "pytest could not collect the file"

    def pytest_runtest_setup(self, item: Any) -> None:
        driver = self._of(item)
        if driver is not None:
            self._session.driver = driver["id"]
            self._session.stage("drive")

    def pytest_runtest_call(self, item: Any) -> None:
        driver = self._of(item)
        test = getattr(item, "obj", None)
        if driver is None or not callable(test):
            return
        self.reached.add(driver["id"])

        @functools.wraps(test)
        def evaluated(*args: Any, **kwargs: Any) -> None:
            self._attempt(driver, functools.partial(test, *args, **kwargs))

        item.obj = evaluated

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        driver = self._of(item)
        if call.excinfo is not None and driver is not None and driver["id"] not in self.reached:
            self.reached.add(driver["id"])
            error = entries.outcome(driver["id"], "abstract", f"{call.when}: {call.excinfo.exconly().splitlines()[0]}")
            self._session.tell_driver(error)


def _no_skip(*args: Any, **kwargs: Any) -> None:
    """A test that skips without an accelerator runs all the same."""


def _calm_hypothesis() -> None:
    """One example for each property, and nothing written."""
    if "hypothesis" not in sys.modules and importlib.util.find_spec("hypothesis") is None:
        return
    with contextlib.suppress(Exception):
        from hypothesis import HealthCheck, Phase, settings

        checks = list(HealthCheck)
        settings.register_profile(
            "pallas-lsp",
            max_examples=1,
            deadline=None,
            database=None,
            suppress_health_check=checks,
            phases=[Phase.generate],
        )
        settings.load_profile("pallas-lsp")


def _without_pytest(session: Session, drivers: list[dict[str, Any]], roots: list[str], attempt: Attempt) -> None:
    path = drivers[0]["path"]
    try:
        tested = importlib.import_module(module.module_name(path)[0])
    except BaseException as error:
        for driver in drivers:
            session.tell_driver(entries.outcome(driver["id"], "abstract", "", error))
        return
    del roots
    for driver in drivers:
        for call, missing in entries.test_calls(tested, driver["name"]):
            if call is None:
                session.tell_driver(entries.outcome(driver["id"], "abstract", missing))
            else:
                session.driver = driver["id"]
                session.stage("drive")
                attempt(driver, call)


def by_file(drivers: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The drivers of kind ``pytest``, grouped by their file."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for driver in drivers:
        if driver["kind"] == "pytest":
            groups.setdefault(driver["path"], []).append(driver)
    yield from groups.values()
