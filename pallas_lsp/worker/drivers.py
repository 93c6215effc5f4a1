"""Running drivers: abstractly first, so that nothing large is computed; concretely where a value is needed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import calls, compat, devices, entries, faults, module, pytests, softening
from .module import CheckedModule
from .session import LaunchFailed, Session, of_a_test_elsewhere

Programs = list[tuple[str, Any]]
"""What drivers staged: (driver, closed jaxpr)."""

CONCRETE_SECONDS = 20.0
"""After this time no more tests of other files are begun with values: the next file's may need none."""
_NO_MATTER_OF_VALUES = (ImportError, NameError, OSError)
"""What ends a test in the same way when it is run with values."""


class Runner:
    """Runs the drivers of one checked file.

    ``abstract()`` evaluates the top level and every driver inside a trace; ``concrete()`` then runs again, for real but
    with recorded launches, those that stopped because they need a value.
    """

    def __init__(self, session: Session, checked: CheckedModule, drivers: list[dict[str, Any]]) -> None:
        self._session = session
        self._checked = checked
        self._drivers = [driver for driver in drivers if driver["kind"] != "module"]
        unnamed = "stub:module" if session.params.get("stand_ins") else "module"
        self._module_id = next((driver["id"] for driver in drivers if driver["kind"] == "module"), unnamed)
        self._has_module = any(driver["kind"] == "module" for driver in drivers)
        self._again: list[tuple[dict[str, Any], Callable[[], Any]]] = []
        self._tests_again: dict[str, dict[str, Any]] = {}
        self._reload = False
        self._until = 0.0
        self._programs: Programs = []
        softening.soften()

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

        if not (self._reload or self._again or self._tests_again):
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
        self._until = time.monotonic() + CONCRETE_SECONDS
        for group in pytests.by_file(list(self._tests_again.values())):
            with devices.answering(group[0].get("target") or ""):
                pytests.run(self._session, group, self._checked.roots, self._test_concretely)
        return self._taken()

    # -- the parts of a run --------------------------------------------------------------------------------------------

    def _everything(self) -> tuple[()]:
        own = [driver for driver in self._drivers if driver["kind"] != "pytest"]
        if (own or self._has_module) and self._top_level():
            for driver in own:
                self._drive(driver)
        for group in pytests.by_file(self._drivers):
            with devices.answering(group[0].get("target") or ""):
                pytests.run(self._session, group, self._checked.roots, self._test_elsewhere)
        return ()

    def _top_level(self) -> bool:
        """Execute the file's top level; False where the drivers cannot run after it."""
        import jax

        session = self._session
        session.driver = self._module_id
        session.stage("import")
        error = self._attempt(lambda: module.register(self._checked))
        if error is not None:
            return self._no_module(error)
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
                return self._no_module(error)
        self._tell(self._module_id, None)
        return True

    def _no_module(self, error: BaseException) -> bool:
        module.unregister(self._checked)
        own = [driver["id"] for driver in self._drivers if driver["kind"] != "pytest"]
        for driver in (self._module_id, *own):
            self._tell(driver, error)
        return False

    def _drive(self, driver: dict[str, Any]) -> None:
        session = self._session
        session.driver = driver["id"]
        session.stage("drive")
        if driver["kind"] in ("call", "guess"):
            self._call(driver)
            return
        for call, missing in entries.calls(self._checked, driver, self._on_statement):
            if call is None:
                session.tell_driver(entries.outcome(driver["id"], "abstract", missing))
            elif isinstance(error := self._stage(driver, call), Exception):
                self._again.append((driver, call))
                self._tell(driver["id"], error)
            else:
                self._tell(driver["id"], error)

    def _on_statement(self, line: int | None) -> None:
        self._session.part = line

    def _call(self, driver: dict[str, Any]) -> None:
        """A call with types instead of arrays (``name``: the expression, or several to try, a line each)."""
        error: BaseException | None = None
        best: list[Any] | None = None
        before = self._session.launched
        for expression in driver["name"].splitlines():
            try:
                call, types = calls.prepare(expression, vars(self._checked.module))
            except calls.BadCall as bad:
                error = bad
                continue
            # Of several guesses the first that leads to no fault counts, else the first that the callee takes.
            with self._session.held() as told:
                error = self._stage(driver, call, types)
            if error is None and (best is None or not told.faulty):
                best = told.messages
            if driver["kind"] == "call" or (best is told.messages and not told.faulty):
                best = told.messages
                break
        if best is not None:
            error = None if driver["kind"] == "guess" else error
            self._session.release(best)
        said = driver["id"].startswith("comment:")
        if said and error is None and self._session.launched == before:
            error = calls.BadCall("this call launches no kernel")
        if error is not None and said and not isinstance(error, LaunchFailed):
            self._session.tell_comment(error, driver["path"], driver["lines"][0])
        self._tell(driver["id"], error)

    def _stage(
        self, driver: dict[str, Any], call: Callable[..., Any], types: Sequence[Any] = ()
    ) -> BaseException | None:
        """Evaluate a call inside a trace and keep the program; return the driver's own exception."""
        import jax

        self._session.mode = "abstract"
        failed: list[BaseException] = []

        def staged(*arrays: Any) -> tuple[()]:
            error = self._attempt(lambda: call(*arrays))
            if error is not None:
                failed.append(error)
            return ()

        self._programs.append((driver["id"], jax.make_jaxpr(staged)(*types)))
        return failed[0] if failed else None

    def _test_elsewhere(self, driver: dict[str, Any], call: Callable[[], Any]) -> None:
        """A test of another file, while its fixtures live: in a trace, and past the values that it looks at."""
        with compat.soft_values(lambda: self._session.inside == 0):
            error = self._stage(driver, call)
        if isinstance(error, Exception) and not isinstance(error, _NO_MATTER_OF_VALUES):
            self._tests_again.setdefault(driver["id"], driver)
        self._session.tell_driver(entries.outcome(driver["id"], "soft", "", error))

    def _test_concretely(self, driver: dict[str, Any], call: Callable[[], Any]) -> None:
        """The same with values, and with launches that give zeros."""
        if time.monotonic() > self._until:
            return  # how it ended before is what is known of it
        self._session.mode = "concrete"
        error = self._attempt(call)
        self._keep()
        self._session.tell_driver(entries.outcome(driver["id"], "concrete", "", error))

    def _tell(self, driver: str, error: BaseException | None) -> None:
        self._session.tell_driver(entries.outcome(driver, self._session.mode, "", error))

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
            fault = isinstance(error, Exception) and faults.is_pallas_fault(error)
            if fault and not self._session.failure_is_expected():
                if not of_a_test_elsewhere(self._session.driver) or self._session.concerns_error(error):
                    self._session.tell_fault(error, stage="build")
                return LaunchFailed("stopped at the fault that is reported")
            return error
        return None


def _executing(code: Any, checked: CheckedModule) -> Callable[[], None]:
    return lambda: exec(code, vars(checked.module))


def tell_stopped(session: Session, driver: str, error: BaseException) -> None:
    """Say that a driver could not run because the file could not be loaded."""
    session.tell_driver(entries.outcome(driver, "abstract", "", error))
