"""What a driver calls: the main block, a test function with its first parameter sets, a test method."""

from __future__ import annotations

import inspect
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from . import faults, frames
from .module import CheckedModule

MOST_VARIANTS = 2

Calls = Iterator[tuple[Callable[[], Any] | None, str]]
"""Each a call, or None with the reason why there is none."""


def calls(checked: CheckedModule, driver: dict[str, Any], on_statement: Callable[[int | None], None]) -> Calls:
    """``on_statement`` is called with the line of each statement of a main block, and with None after the last."""
    if driver["kind"] == "main":
        if checked.main is None:
            yield None, "the file has no main block"
        else:
            left_out = set(driver.get("lines") or ())
            chosen = [(line, code) for line, code in checked.main if line not in left_out]
            yield lambda: _run_main(chosen, checked, on_statement), ""
    elif driver["kind"] == "test":
        yield from test_calls(checked.module, driver["name"])
    else:
        yield None, f"drivers of kind {driver['kind']!r} are not known to this worker"


def _run_main(
    statements: list[tuple[int, types.CodeType]], checked: CheckedModule, on_statement: Callable[[int | None], None]
) -> None:
    namespace = vars(checked.module)
    previous, sys.modules["__main__"] = sys.modules.get("__main__"), checked.module
    name, namespace["__name__"] = namespace["__name__"], "__main__"
    try:
        for line, code in statements:
            on_statement(line)
            exec(code, namespace)
    finally:
        on_statement(None)
        namespace["__name__"] = name
        if previous is not None:
            sys.modules["__main__"] = previous


def outcome(driver: str, mode: str, error: str, exception: BaseException | None = None) -> dict[str, Any]:
    """The protocol's ``DriverOutcome``; ``error`` empty and no exception: the driver finished."""
    places = [
        frame
        for frame in frames.of_traceback(exception.__traceback__ if exception is not None else None)
        if frame["origin"] == "workspace"
    ]
    text = error or (faults.summary(exception) if exception is not None else "")
    return {
        "driver": driver,
        "finished": not text,
        "error": text,
        "frame": places[-1] if places else None,
        "mode": mode,
    }


def test_calls(tested: types.ModuleType, name: str) -> Calls:
    """The calls of a test function (``name``) or method (``Class.name``) of a module."""
    owner, _, method = name.rpartition(".")
    scope: Any = vars(tested).get(owner) if owner else None
    if owner and scope is None:
        yield None, f"the file has no class {owner}"
        return
    available = dir(scope) if owner else list(vars(tested))
    # absl's parameterized adds a suffix to a method's name for each parameter set.
    names = [method] if method in available else sorted(n for n in available if n.startswith(method))[:MOST_VARIANTS]
    if not names:
        yield None, f"the file has no test {name}"
    for found in names:
        if owner:
            yield from _method(scope, found)
        else:
            yield from _function(getattr(tested, found))


def _method(owner: Any, name: str) -> Calls:
    if isinstance(owner, type) and issubclass(owner, unittest.TestCase):
        yield _case(owner, name), ""
    else:
        yield from _function(getattr(owner(), name))


def _case(owner: type[unittest.TestCase], name: str) -> Callable[[], None]:
    def call() -> None:
        case = owner(name)
        owner.setUpClass()
        case.setUp()
        try:
            getattr(case, name)()
        finally:
            case.tearDown()
            case.doCleanups()

    return call


def _function(function: Any) -> Calls:
    """A test function once for each of its first parameter sets (pytest keeps them as ``pytestmark``)."""
    variants: list[dict[str, Any]] = [{}]
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            sets = _parameter_sets(mark.args[0], mark.args[1])
            variants = [{**old, **new} for new in sets for old in variants][:MOST_VARIANTS]
    for given in variants:
        needed = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in given
        ]
        if needed:
            yield None, f"{function.__name__} needs fixtures: {', '.join(needed)}"
        else:
            yield _bound(function, given), ""


def _bound(function: Any, given: dict[str, Any]) -> Callable[[], Any]:
    return lambda: function(**given)


def _parameter_sets(names: Any, values: Any) -> list[dict[str, Any]]:
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    sets = []
    for entry in list(values)[:MOST_VARIANTS]:
        given = getattr(entry, "values", entry) if type(entry).__name__ == "ParameterSet" else entry
        wrapped = len(split) == 1 and type(entry).__name__ != "ParameterSet"
        sets.append(dict(zip(split, [given] if wrapped else given, strict=False)))
    return sets
