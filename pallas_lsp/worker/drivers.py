"""Running drivers: abstractly first, so that nothing large is computed; concretely where a value is needed."""

from __future__ import annotations

import contextlib
import sys
import unittest
from collections.abc import Callable
from typing import Any

from . import compat, entries, faults, frames, module
from .module import CheckedModule
from .session import LaunchFailed, Session

Programs = list[tuple[str, Any]]
"""What drivers staged: (driver, closed jaxpr)."""


class Runner:
    """Runs the drivers of one checked file.

    ``abstract()`` evaluates the top level and every driver inside a trace; ``concrete()`` then runs again, for real but
    with recorded launches, those that stopped because they need a value.
    """

    def __init__(self, session: Session, checked: CheckedModule, drivers: list[dict[str, Any]]) -> None:
        self._session = session
        self._checked = checked
        self._drivers = [driver for driver in drivers if driver["kind"] != "module"]
        self._module_id = next((driver["id"] for driver in drivers if driver["kind"] == "module"), "module")
        self._again: list[tuple[dict[str, Any], Callable[[], Any]]] = []
        self._reload = False
        self._programs: Programs = []
        _soften()

    def abstract(self) -> Programs:
        import jax

        if any(part.abstract for part in self._checked.parts):
            # One trace around everything: the values of the top level stay alive for the drivers.
            outer = jax.make_jaxpr(self._everything)()
            self._programs.insert(0, (self._module_id, outer))
        else:
            self._everything()
        return self._taken()

    def concrete(self) -> Programs:
        """The second attempt; empty where nothing has to be run again."""
        import jax

        if not (self._reload or self._again):
            return []
        jax.clear_caches()
        if self._reload:
            checked = self._checked
            self._checked = module.load(checked.path, checked.text, (), checked.roots)
            self._again.clear()
            self._everything()
        for driver, call in self._again:
            session = self._session
            session.driver, session.mode = driver["id"], "concrete"
            session.stage("drive")
            error = self._attempt(call)
            self._keep()
            self._tell(driver["id"], error)
        return self._taken()

    # -- the parts of a run --------------------------------------------------------------------------------------------

    def _everything(self) -> tuple[()]:
        if self._top_level():
            for driver in self._drivers:
                self._drive(driver)
        return ()

    def _top_level(self) -> bool:
        """Execute the file's top level; False where the drivers cannot run after it."""
        import jax

        session = self._session
        session.driver = self._module_id
        session.stage("import")
        mixed = any(part.abstract for part in self._checked.parts)
        for part in self._checked.parts:
            session.mode = "abstract" if part.abstract else "concrete"
            context: Any = jax.ensure_compile_time_eval() if mixed and not part.abstract else contextlib.nullcontext()
            with context:
                error = self._attempt(_executing(part.code, self._checked))
            self._keep()
            if error is not None:
                if part.abstract and not self._reload:
                    self._reload = True
                    return False
                for driver in ({"id": self._module_id}, *self._drivers):
                    self._tell(driver["id"], error)
                return False
        self._tell(self._module_id, None)
        return True

    def _drive(self, driver: dict[str, Any]) -> None:
        import jax

        session = self._session
        session.driver = driver["id"]
        session.stage("drive")
        for call, missing in entries.calls(self._checked, driver):
            if call is None:
                session.tell_driver(_outcome(driver["id"], "abstract", missing))
                continue
            session.mode = "abstract"
            failed: list[BaseException] = []

            def staged(call: Callable[[], Any] = call, failed: list[BaseException] = failed) -> tuple[()]:
                error = self._attempt(call)
                if error is not None:
                    failed.append(error)
                return ()

            self._programs.append((driver["id"], jax.make_jaxpr(staged)()))
            if failed and not isinstance(failed[0], (SystemExit, LaunchFailed)):
                self._again.append((driver, call))
            self._tell(driver["id"], failed[0] if failed else None)

    def _tell(self, driver: str, error: BaseException | None) -> None:
        session = self._session
        session.tell_driver(_outcome(driver, session.mode, faults.summary(error) if error else "", error))

    def _keep(self) -> None:
        """Take over the programs of launches that were traced aside."""
        for capture in self._session.captures.values():
            if capture.program is not None:
                self._programs.append((capture.driver, capture.program))
                capture.program = None

    def _taken(self) -> Programs:
        taken, self._programs = self._programs, []
        return taken

    def _attempt(self, call: Callable[[], Any]) -> BaseException | None:
        """Run user code.  A fault of Pallas is told as such; the driver's own exception is returned."""
        try:
            call()
        except LaunchFailed as stopped:
            return stopped
        except SystemExit as leave:
            return leave if leave.code not in (None, 0) else None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if faults.is_pallas_fault(error) and not self._session.failure_is_expected():
                self._session.tell_fault(error, stage="build")
                return LaunchFailed("stopped at the fault that is reported")
            return error
        return None


def _executing(code: Any, checked: CheckedModule) -> Callable[[], None]:
    return lambda: exec(code, vars(checked.module))


def tell_stopped(session: Session, driver: str, error: BaseException) -> None:
    """Say that a driver could not run because the file could not be loaded."""
    session.tell_driver(_outcome(driver, "abstract", faults.summary(error), error))


def _outcome(driver: str, mode: str, error: str, exception: BaseException | None = None) -> dict[str, Any]:
    places = [
        frame
        for frame in frames.of_traceback(exception.__traceback__ if exception is not None else None)
        if frame["origin"] == "workspace"
    ]
    return {
        "driver": driver,
        "finished": not error,
        "error": error,
        "frame": places[-1] if places else None,
        "mode": mode,
    }


def _soften() -> None:
    """Comparisons of values never fail: the values of a kernel are not computed here."""
    import jax

    names = [name for name in faults.CONCRETE_VALUE_NEEDED if hasattr(jax.errors, name)]
    module.ignore_in_asserts((AssertionError, *(getattr(jax.errors, name) for name in names)))
    compat.soften_tracers()
    for name in dir(unittest.TestCase):
        if name.startswith("assert") and not name.startswith(("assertRaises", "assertWarns", "assertLogs")):
            setattr(unittest.TestCase, name, _nothing)
    testing = sys.modules.get("numpy.testing")
    if testing is None:
        import numpy.testing as testing  # type: ignore[import-not-found,no-redef]
    for name in dir(testing):
        if name.startswith("assert_") and callable(getattr(testing, name)) and "raises" not in name:
            setattr(testing, name, _nothing)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for a comparison of values."""
