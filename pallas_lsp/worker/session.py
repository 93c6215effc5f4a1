"""The state of one run: what was captured, what was told to the engine, and in which mode user code runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import faults, frames, handlers, know_given

Emit = Callable[[str, dict[str, Any]], None]

# A launch in a loop is traced again only while something about it changes.
MOST_CAPTURES_PER_KERNEL = 12


class LaunchFailed(BaseException):
    """A launch that cannot go on and has no output type to go on with; past the user's own ``except Exception``."""


def of_a_test_elsewhere(driver: str) -> bool:
    """Whether an id is that of a driver of kind ``pytest``; ``stub:`` says that it runs with stand-ins."""
    return driver.removeprefix("stub:").startswith("pytest:")


@dataclass
class Capture:
    """One launch reached by one driver, with the program that it became (``program``: a closed jaxpr).

    ``again``: a function of arrays and their types, to trace the launch alone.  ``stateful``: it works on refs of the
    function around it, and can be lowered only with that.  ``tpu``: the kind of the TPU whose facts user code read.
    """

    id: str
    api: str
    driver: str
    arguments: str
    launch: list[frames.Frame]
    call: list[frames.Frame]
    body: dict[str, Any] | None
    options: dict[str, Any]
    namespace: dict[str, Any]
    backend: str = "any"
    tpu: str | None = None
    entry: dict[str, Any] | None = None
    program: Any = None
    again: tuple[Any, Any] | None = None
    stateful: bool = False
    failed: bool = False
    stage: str = "build"
    targets: list[str] = field(default_factory=list)
    seconds: float = 0.0
    resources: dict[str, Any] = field(default_factory=dict)
    part: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "api": self.api,
            "backend": self.backend,
            "driver": self.driver,
            "arguments": self.arguments,
            "launch": self.launch[-1] if self.launch else None,
            "call": self.call[-1] if self.call else None,
            "body": self.body,
            "entry": self.entry,
            "targets": self.targets,
            "stage": self.stage,
            "seconds": round(self.seconds, 4),
            "resources": self.resources,
            "part": self.part,
        }


@dataclass
class Held:
    """Messages that were kept back, and whether a fault is among them."""

    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    faulty: bool = False

    def receive(self, kind: str, fields: dict[str, Any]) -> None:
        self.messages.append((kind, fields))
        self.faulty = self.faulty or kind == "fault"


class Session:
    def __init__(self, emit: Emit, params: dict[str, Any]) -> None:
        self._emit = emit
        self.params = params
        self.driver = "module"
        self.mode = "abstract"
        self.part: int | None = None
        """The first line of the main block's statement that is executed."""
        self.captures: dict[str, Capture] = {}
        self.outputs: dict[tuple[Any, ...], Any] = {}
        self.inside = 0
        self.launched = 0
        """How many launches were met, the ones that were known by then too."""
        self.gpu: dict[str, Any] | None = None
        self.expected_failures: list[tuple[str, int, int]] = []
        self._told: set[tuple[Any, ...]] = set()

    @contextlib.contextmanager
    def held(self) -> Iterator[Held]:
        """Keep back what is told meanwhile; ``release`` tells it."""
        held, emit = Held(), self._emit
        told = set(self._told)
        self._emit = held.receive
        try:
            yield held
        finally:
            self._emit = emit
            self._told = told

    def release(self, messages: list[tuple[str, dict[str, Any]]]) -> None:
        for kind, fields in messages:
            self._emit(kind, fields)

    def stage(self, stage: str, capture: str | None = None) -> None:
        self._emit("stage", {"stage": stage, "driver": self.driver, "capture": capture})

    def tell_capture(self, capture: Capture) -> None:
        self._emit("capture", {"capture": capture.as_json()})

    def tell(self, method: str, fields: dict[str, Any]) -> None:
        self._emit(method, fields)

    def tell_view(self, capture: Capture, target: str, text: str) -> None:
        self._emit("view", {"capture": capture.id, "target": target, "text": text})

    def tell_driver(self, outcome: dict[str, Any]) -> None:
        self._emit("driver", {"outcome": outcome})

    def tell_fault(self, error: BaseException, *, stage: str, capture: Capture | None = None, **more: Any) -> None:
        if capture is not None and not self.concerns(capture):
            return  # it is told when that kernel's own file is checked
        fault = faults.describe(error, stage=stage, driver=self.driver, capture=capture.id if capture else None, **more)
        if capture is not None:
            with contextlib.suppress(Exception):
                fault["facts"].update(know_given.facts(capture.options))
            if handlers.caught(error, [*capture.launch, *capture.call]):
                fault["facts"]["caught"] = True
        key = (
            fault["capture"],
            fault["stage"],
            fault["message"],
            str(fault["anchors"][:1]),
            str(fault["site"]),
            fault["target"],
        )
        if key not in self._told:
            self._told.add(key)
            self._emit("fault", {"fault": fault})

    def tell_silent(
        self,
        check: str,
        places: list[frames.Frame],
        facts: dict[str, Any],
        related: list[dict[str, Any]],
        capture: Capture,
    ) -> None:
        """Tell a fault that jax does not raise."""
        fault = faults.silent(check, places or capture.call, {**facts, "related": related}, self.driver, capture.id)
        fault["anchors"].append({"by": "launch", "frames": capture.call or capture.launch})
        with contextlib.suppress(Exception):
            fault["facts"].update(know_given.facts(capture.options))
        key = (capture.id, check, str(places[-1:]), str(facts))
        if key not in self._told:
            self._told.add(key)
            self._emit("fault", {"fault": fault})

    def tell_comment(self, error: BaseException, path: str, line: int) -> None:
        """Tell that a shape comment reaches no kernel."""
        self._emit("fault", {"fault": faults.of_comment(error, path, line, self.driver)})

    def new_capture(self, **fields: Any) -> Capture:
        fields["launch"] = self._to_the_file(fields["launch"])
        capture = Capture(id=f"c{len(self.captures) + 1}", driver=self.driver, part=self.part, **fields)
        self.captures[capture.id] = capture
        return capture

    def _to_the_file(self, stack: list[frames.Frame]) -> list[frames.Frame]:
        """A launch's stack as far as the checked file's launch: a test may put a function of its own in jax's place."""
        path, lines = self.params.get("path"), self.params.get("launches") or ()
        if stack and stack[-1]["path"] != path:
            for number, frame in enumerate(reversed(stack)):
                if frame["path"] == path and frame["line"] in lines:
                    return stack[: len(stack) - number]
        return stack

    @property
    def focus(self) -> str | None:
        """The file whose kernels matter, where tests of other files are run for it."""
        return self.params.get("focus")

    def concerns(self, capture: Capture) -> bool:
        """Whether a capture is lowered and its faults are told: of a test elsewhere only what is the focus file's."""
        if self.focus is None or not of_a_test_elsewhere(capture.driver):
            return True
        body = [capture.body] if capture.body is not None else []
        return self.concerns_places([*capture.launch[-1:], *capture.call[-1:], *body])

    def concerns_places(self, places: list[dict[str, Any]]) -> bool:
        return self.focus is None or any(place["path"] == self.focus for place in places)

    def concerns_error(self, error: BaseException) -> bool:
        return self.concerns_places(list(frames.of_traceback(error.__traceback__)))

    @property
    def searching(self) -> bool:
        """Whether tests are tried for the launches that they may reach (``enough``)."""
        return bool(self.params.get("enough"))

    def satisfied(self) -> bool:
        """Whether every launch of the focus file was reached (``launches``: their first lines) where that is enough."""
        lines = self.params.get("launches")
        if not lines or self.focus is None or not self.searching:
            return False
        reached = {f["line"] for c in self.captures.values() for f in c.launch[-1:] if f["path"] == self.focus}
        return set(lines) <= reached

    @contextlib.contextmanager
    def launching(self) -> Iterator[None]:
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def failure_is_expected(self) -> bool:
        """Whether user code stands inside ``pytest.raises`` or ``assertRaises``: there a fault is what is wanted."""
        return any(
            frame["path"] == path and first <= frame["line"] <= last
            for frame in frames.of_stack(sys._getframe(1))
            for path, first, last in self.expected_failures
        )
