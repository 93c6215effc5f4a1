"""Tests of other files as drivers, run by the user's own pytest: its import mode, fixtures, conftest, parametrization.

Each test is evaluated abstractly, inside a trace; what it launches is found in the program of that trace.  Where the
user's environment has no pytest, unittest classes and plain functions are called as those of the checked file are.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import entries, late, module, skips, soft_tests, softening
from .session import Session

Attempt = Callable[[dict[str, Any], Callable[[], Any]], None]
"""Evaluates a call for a driver."""

SECONDS = 20.0
"""How long a test may take, below the engine's clock: what takes longer is left out, and the others are run."""
FEWEST = 3
"""The tests of a file that are run although fewer reach every launch: each may bring other types."""
MOST_INHERITED = 12
"""The tests of a class that are run where only the class is known."""
MOST_VARIANTS = 10
"""The parameter sets of a test that are tried while launches are not reached, if the test reaches others."""

_WITHOUT = (
    *("cacheprovider", "xdist", "cov", "randomly", "timeout", "warnings"),
    # They only report; one of them runs the collector five times at the end.
    *("faulthandler", "pastebin", "setuponly", "setupplan", "stepwise", "threadexception", "unraisableexception"),
)
_OPTIONS = (
    "--assert=plain",
    *(part for name in _WITHOUT for part in ("-p", f"no:{name}")),
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
    _skip_by_reason(pytest)
    with contextlib.suppress(Exception):
        softening.expect_nothing(type(pytest.raises(ValueError)))
    plugin = Plugin(session, drivers, attempt)
    _calm_hypothesis()
    with contextlib.chdir(_folder(path, roots)) if hasattr(contextlib, "chdir") else contextlib.nullcontext():
        pytest.main([*_OPTIONS, path], plugins=[plugin])
    for driver in drivers:
        if driver["id"] not in plugin.reached:
            reason = plugin.trouble or f"pytest finds no test {driver['name']} in {os.path.basename(path)}"
            session.tell_driver(entries.outcome(driver["id"], "abstract", reason))


def prepare(session: Session, roots: list[str]) -> None:
    """Have test modules imported with asserts that never fail, and flags that nobody parses with their defaults."""
    soft_tests.install(roots, session.expected_failures.extend)
    late.on_import("absl.flags", lambda flags: flags.FLAGS.mark_as_parsed())


def _folder(path: str, roots: list[str]) -> str:
    """Where the user would call pytest: the workspace folder."""
    return next((root for root in roots if path.startswith(root + os.sep)), os.path.dirname(path))


class Plugin:
    """A pytest plug-in.  Keeps the wanted tests and their first variants, and evaluates each through ``attempt``."""

    def __init__(self, session: Session, drivers: list[dict[str, Any]], attempt: Attempt) -> None:
        self._session = session
        self._drivers = {driver["name"]: driver for driver in drivers}
        self._attempt = attempt
        self._more: set[int] = set()
        self._useful: set[str] = set()
        self.reached: set[str] = set()
        self.trouble = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        groups: dict[str, list[Any]] = {}
        for item in items:
            driver = self._of(item)
            if driver is not None:
                groups.setdefault(driver["id"], []).append(item)
                node = item
                while node is not None:
                    node.own_markers = [mark for mark in node.own_markers if skips.mark_obeyed(mark)]
                    node = node.parent
        first, more = [], []
        for variants in groups.values():
            # The first and the last differ most; others matter where these do not lead to every launch.
            ends = variants[:1] + variants[1:][-1:]
            if _is_class(self._of(variants[0])):
                ends = _spread(variants, MOST_INHERITED)
            first += ends
            if self._session.searching:
                more += _spread([item for item in variants if item not in ends], MOST_VARIANTS - len(ends))
        self._more = set(map(id, more))
        items[:] = [*first, *more]

    def _of(self, item: Any) -> dict[str, Any] | None:
        """The driver that wants a test: one of its name, of its name and parameters, or of the start of its name."""
        full = _full_name(item)
        exact = self._drivers.get(full + _parameters(item)) or self._drivers.get(full)
        if exact is not None:
            return exact
        # absl's parameterized adds a suffix to a method's name for each parameter set.
        found = [known for known in self._drivers if full.startswith(known)]
        return self._drivers[max(found, key=len)] if found else None

    def _is_needed(self, item: Any, driver: dict[str, Any]) -> bool:
        if id(item) in self._more:
            return driver["id"] in self._useful and not self._session.satisfied()
        return len(self.reached) < FEWEST or driver["id"] in self.reached or not self._session.satisfied()

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            lines = str(report.longrepr).strip().splitlines()
            self.trouble = lines[-1].removeprefix("E ").strip() if lines else "pytest could not collect the file"
        elif report.skipped:
            self.trouble = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)

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
        if not self._is_needed(item, driver):
            item.obj = _nothing
            if driver["id"] not in self.reached:
                self.reached.add(driver["id"])
                self._session.tell_driver(entries.outcome(driver["id"], "not needed", ""))
            return
        wanted = driver["id"]
        if id(item) in self._more or _is_class(driver):
            driver = _variant(driver, _full_name(item) + _parameters(item))
            self._session.driver = driver["id"]

        @functools.wraps(test)
        def evaluated(*args: Any, **kwargs: Any) -> None:
            self.reached.add(wanted)
            with _alarm():
                self._attempt(driver, functools.partial(test, *args, **kwargs))
            captures = self._session.captures.values()
            if any(each.driver == driver["id"] and self._session.concerns(each) for each in captures):
                self._useful.add(wanted)

        item.obj = evaluated

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        driver = self._of(item)
        if call.excinfo is not None and driver is not None and driver["id"] not in self.reached:
            self.reached.add(driver["id"])
            error = entries.outcome(driver["id"], "abstract", f"{call.when}: {call.excinfo.exconly().splitlines()[0]}")
            self._session.tell_driver(error)


def _is_class(driver: dict[str, Any] | None) -> bool:
    """Whether a driver is the tests that a class inherits from another file: ``Class.``."""
    return driver is not None and driver["name"].endswith(".")


def _full_name(item: Any) -> str:
    owner = getattr(item, "cls", None)
    name = getattr(item, "originalname", None) or item.name.split("[")[0]
    return f"{owner.__name__}.{name}" if owner is not None else name


def _parameters(item: Any) -> str:
    """The parameter set of a test as pytest writes it after the name: ``[64-float16]``."""
    return f"[{item.name.partition('[')[2]}" if "[" in item.name else ""


def _variant(driver: dict[str, Any], name: str) -> dict[str, Any]:
    """A driver for one parameter set of a test."""
    target = driver.get("target") or ""
    kind = driver["id"].partition(driver["path"])[0]
    return {**driver, "id": f"{kind}{driver['path']}::{name}{'@' + target if target else ''}", "name": name}


def _spread(items: list[Any], most: int) -> list[Any]:
    """As many of the items as may be, evenly from all of them."""
    step = max(1.0, len(items) / most)
    return [items[int(number * step)] for number in range(min(most, len(items)))]


class TookTooLong(BaseException):
    """Past the test's own handlers."""


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Stop what takes longer than ``SECONDS``, where the system can interrupt it."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(_number: int, _frame: Any) -> None:
        raise TookTooLong(f"took more than {SECONDS:g} s")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 1.0)  # again, should the first be lost in a finalizer
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for a test that is not needed."""


def _skip_by_reason(pytest: Any) -> None:
    """A test that skips without an accelerator runs all the same."""
    original = pytest.skip
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def skip(*args: Any, **kwargs: Any) -> None:
        if skips.obeyed(kwargs.get("reason", args[0] if args else None)):
            original(*args, **kwargs)

    skip.Exception = original.Exception  # type: ignore[attr-defined]
    pytest.skip = skip


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
        # Helpers of tests load profiles of their own.
        settings.load_profile = _nothing  # type: ignore[method-assign]


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
    """The drivers of kind ``pytest``, grouped by their file and the device that answers."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for driver in drivers:
        if driver["kind"] == "pytest":
            groups.setdefault((driver.get("target") or "", driver["path"]), []).append(driver)
    yield from (groups[key] for key in sorted(groups))
