"""Running drivers: abstractly first, so that nothing large is computed; concretely where a value is needed."""

from __future__ import annotations

import contextlib
import inspect
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from . import faults, frames
from .module import CheckedModule, ignore_in_asserts
from .session import LaunchFailed, Session

MOST_VARIANTS = 2


class Stopped(BaseException):
    """The checked file's top level did not finish: nothing after it can run."""


def run_all(session: Session, checked: CheckedModule, drivers: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Execute the file's top level, then each driver; return the programs that they staged (driver, closed jaxpr)."""
    import jax

    programs: list[tuple[str, Any]] = []
    _soften(session)
    with contextlib.suppress(Stopped):
        if any(part.abstract for part in checked.parts):
            # One trace around everything: values of the top level stay alive for the drivers.
            outer = jax.make_jaxpr(lambda: _everything(session, checked, drivers, programs))()
            programs.insert(0, ("module", outer))
        else:
            _everything(session, checked, drivers, programs)
    return programs


def _everything(
    session: Session, checked: CheckedModule, drivers: list[dict[str, Any]], programs: list[tuple[str, Any]]
) -> tuple[()]:
    import jax

    wanted = {driver["kind"]: driver["id"] for driver in drivers}
    session.driver = wanted.get("module", "module")
    session.stage("import")
    outcome: dict[str, Any] = {"driver": session.driver, "finished": True, "error": "", "frame": None, "mode": "abstract"}
    for part in checked.parts:
        context: Any = contextlib.nullcontext()
        if not part.abstract and any(other.abstract for other in checked.parts):
            context = jax.ensure_compile_time_eval()
        session.mode = "abstract" if part.abstract else "concrete"
        with context:
            error = _attempt(session, lambda code=part.code: exec(code, vars(checked.module)))  # type: ignore[misc]
        _keep_concrete(session, programs)
        if error is not None and not (part.abstract and faults.needs_concrete_value(error)):
            outcome.update(finished=False, **_own(error))
            session.tell_driver(outcome)
            for driver in drivers:
                if driver["kind"] != "module":
                    session.tell_driver({**outcome, "driver": driver["id"]})
            if part.abstract:
                return ()
            raise Stopped
        if error is not None:
            outcome.update(finished=False, **_own(error))
    session.tell_driver(outcome)
    for driver in drivers:
        if driver["kind"] != "module":
            session.driver = driver["id"]
            _drive(session, checked, driver, programs)
    return ()


def _drive(
    session: Session, checked: CheckedModule, driver: dict[str, Any], programs: list[tuple[str, Any]]
) -> None:
    import jax

    session.stage("drive")
    outcome: dict[str, Any] = {"driver": driver["id"], "finished": True, "error": "", "frame": None, "mode": "abstract"}
    for call, missing in _calls(checked, driver):
        if call is None:
            outcome.update(finished=False, error=missing)
            continue
        session.mode = "abstract"
        failed: list[BaseException] = []

        def staged(call: Callable[[], Any] = call, failed: list[BaseException] = failed) -> tuple[()]:
            error = _attempt(session, call)
            if error is not None:
                failed.append(error)
            return ()

        programs.append((driver["id"], jax.make_jaxpr(staged)()))
        if failed and faults.needs_concrete_value(failed[0]):
            session.stage("drive")
            session.mode = "concrete"
            jax.clear_caches()
            failed = [error] if (error := _attempt(session, call)) is not None else []
            outcome["mode"] = "concrete"
            _keep_concrete(session, programs)
        if failed:
            outcome.update(finished=False, **_own(failed[0]))
    session.tell_driver(outcome)


def _keep_concrete(session: Session, programs: list[tuple[str, Any]]) -> None:
    """Take over the programs of launches that were traced aside."""
    for capture in session.captures.values():
        if capture.program is not None:
            programs.append((capture.driver, capture.program))
            capture.program = None


def _attempt(session: Session, call: Callable[[], Any]) -> BaseException | None:
    """Run user code.  A fault of Pallas is told as such; the driver's own exception is returned."""
    try:
        call()
    except LaunchFailed:
        return None
    except SystemExit as leave:
        return leave if leave.code not in (None, 0) else None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if faults.is_pallas_fault(error) and not session.failure_is_expected():
            session.tell_fault(error, stage="build")
            return None
        return error
    return None


def tell_stopped(session: Session, driver: str, error: BaseException) -> None:
    session.tell_driver({"driver": driver, "finished": False, "mode": "abstract", **_own(error)})


def _own(error: BaseException) -> dict[str, Any]:
    places = [frame for frame in frames.of_traceback(error.__traceback__) if frame["origin"] == "workspace"]
    return {"error": faults.summary(error), "frame": places[-1] if places else None}


# -- what a driver calls ---------------------------------------------------------------------------------------------


def _calls(checked: CheckedModule, driver: dict[str, Any]) -> Iterator[tuple[Callable[[], Any] | None, str]]:
    """The calls of a driver, each or else the reason why there is none."""
    if driver["kind"] == "main":
        if checked.main is None:
            yield None, "the file has no main block any more"
        else:
            code, namespace = checked.main, vars(checked.module)
            yield lambda: _run_main(code, checked, namespace), ""
    elif driver["kind"] == "test":
        yield from _test_calls(checked, driver["name"])
    else:
        yield None, f"drivers of kind {driver['kind']!r} are not known to this worker"


def _run_main(code: Any, checked: CheckedModule, namespace: dict[str, Any]) -> None:
    previous, sys.modules["__main__"] = sys.modules.get("__main__"), checked.module
    name, namespace["__name__"] = namespace["__name__"], "__main__"
    try:
        exec(code, namespace)
    finally:
        namespace["__name__"] = name
        if previous is not None:
            sys.modules["__main__"] = previous


def _test_calls(checked: CheckedModule, name: str) -> Iterator[tuple[Callable[[], Any] | None, str]]:
    owner, _, method = name.rpartition(".")
    scope: Any = vars(checked.module).get(owner) if owner else None
    if owner and scope is None:
        yield None, f"the file has no class {owner}"
        return
    available = dir(scope) if owner else list(vars(checked.module))
    # absl's parameterized and unittest's loaders add a suffix to a method's name for each parameter set.
    names = [method] if method in available else sorted(n for n in available if n.startswith(method))[:MOST_VARIANTS]
    if not names:
        yield None, f"the file has no test {name}"
    for found in names:
        if owner:
            yield from _method_calls(scope, found)
        else:
            yield from _function_calls(getattr(checked.module, found))


def _method_calls(owner: Any, name: str) -> Iterator[tuple[Callable[[], Any] | None, str]]:
    if isinstance(owner, type) and issubclass(owner, unittest.TestCase):

        def call() -> None:
            case = owner(name)
            owner.setUpClass()
            case.setUp()
            try:
                getattr(case, name)()
            finally:
                case.tearDown()
                case.doCleanups()

        yield call, ""
    else:
        yield from _function_calls(getattr(owner(), name))


def _function_calls(function: Any) -> Iterator[tuple[Callable[[], Any] | None, str]]:
    """A test function once for each of its first parameter sets (pytest keeps them as ``pytestmark``)."""
    variants: list[dict[str, Any]] = [{}]
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0]
            names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
            sets = []
            for values in list(mark.args[1])[:MOST_VARIANTS]:
                values = getattr(values, "values", values) if type(values).__name__ == "ParameterSet" else values
                sets.append(dict(zip(names, values if len(names) > 1 or _is_set(values) else [values], strict=False)))
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
            yield (lambda given=given: function(**given)), ""  # type: ignore[misc]


def _is_set(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) == 1


def _soften(session: Session) -> None:
    """Comparisons of values never fail: the values of a kernel are not computed here."""
    del session
    import jax
    import numpy.testing

    errors = tuple(
        getattr(jax.errors, name) for name in faults.CONCRETE_VALUE_NEEDED if hasattr(jax.errors, name)
    )
    ignore_in_asserts((AssertionError, *errors))
    for name in dir(numpy.testing):
        if name.startswith("assert_") and callable(getattr(numpy.testing, name)) and "raises" not in name:
            setattr(numpy.testing, name, _nothing)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for a comparison of values."""
