"""How a fault is tried: what is asked of the server, and the figures that are written down."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from editor import Editor, Seen
from scene import Scene

ANSWER_SECONDS = 1.0
RECOVERY_SECONDS = 2.0
PATIENCE = 30.0
"""How long a fault may take to be told: a stage's limit of time, and the run without what broke it."""
RESULTS = "PALLAS_LSP_FAULT_RESULTS"
SLACK = "PALLAS_LSP_FAULT_SLACK"
_BESIDE_OTHERS = 6.0


def slack(beside: bool | None = None) -> float:
    """What the limits are multiplied by: the variable's value; without it 1, or 6 where pytest-xdist runs other tests,
    which start processes with jax of their own, on the same cores (``beside``)."""
    if beside is None and (named := os.environ.get(SLACK)):
        return float(named)
    return _BESIDE_OTHERS if beside or "PYTEST_XDIST_WORKER" in os.environ else 1.0


Steps = Iterator[None]
"""A fault's life: it comes, is told at the ``yield``, and its cause ends after it."""


@dataclass(frozen=True)
class Fault:
    """``said``: what the user must read, once (a pattern); empty where nothing is wrong for the user.

    ``silent``: no answers can be timed, since the client reads none.
    """

    name: str
    title: str
    drive: Callable[[Scene], Steps]
    said: str = ""
    silent: bool = False


@dataclass
class Faults:
    """The faults of one module, in the order of the table."""

    group: str
    every: list[Fault] = field(default_factory=list)

    def add(self, title: str, said: str = "", *, silent: bool = False) -> Callable[..., Callable[[Scene], Steps]]:
        def register(drive: Callable[[Scene], Steps]) -> Callable[[Scene], Steps]:
            self.every.append(Fault(drive.__name__.replace("_", "-"), title, drive, said, silent))
            return drive

        return register


@dataclass(frozen=True)
class Observation:
    """A row of the table.  ``slowest``: of the answers meanwhile; None where none could be timed."""

    name: str
    saw: str
    slowest: float | None
    recovery: float


class Heartbeat:
    """Asks something cheap all the time, as an editor does while the cursor moves, and times the answers."""

    SECONDS = 0.1
    _METHODS = ("textDocument/hover", "textDocument/codeLens")

    def __init__(self, editor: Editor, uri: str) -> None:
        self._editor = editor
        self._uri = uri
        self._sent: dict[str, float] = {}
        self._over = threading.Event()
        self._first = len(editor.history)
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        while True:
            number = len(self._sent)
            name = f"beat {id(self)} {number}"
            self._sent[name] = time.monotonic()
            params = {"textDocument": {"uri": self._uri}, "position": {"line": 11, "character": 12}}
            try:
                self._editor.send(id=name, method=self._METHODS[number % 2], params=params)
            except OSError:  # the server is gone; what waits for it will say so
                return
            if self._over.wait(self.SECONDS):
                return

    @contextmanager
    def going(self) -> Iterator[Heartbeat]:
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def slowest(self) -> float:
        """The longest that an answer took; waits for those that are due."""

        def answers() -> dict[str, float]:
            since = self._editor.history[self._first :]
            return {m["id"]: when for when, m in since if m.get("id") in self._sent and "result" in m}

        try:
            found = self._editor.until(lambda: got if len(got := answers()) == len(self._sent) else None, PATIENCE)
        except AssertionError:
            missing = self._sent.keys() - answers().keys()
            said = [m for _, m in self._editor.history[self._first :] if m.get("id") in missing]
            raise AssertionError(f"{len(missing)} of {len(self._sent)} requests have no answer: {said}") from None
        return max(when - self._sent[name] for name, when in found.items())


def play(fault: Fault, scene: Scene) -> Observation:
    """Try a fault; raises AssertionError where the server fails it."""
    editor, factor = scene.editor, slack()
    scene.start_clean()
    began = time.monotonic()
    beat = Heartbeat(editor, scene.uri)
    with beat.going() if not fault.silent else _nothing():
        steps = fault.drive(scene)
        next(steps)
        if fault.said:
            editor.until(lambda: editor.said(fault.said, began), PATIENCE)
        ended = time.monotonic()
        for _ in steps:
            raise AssertionError("a fault has one yield")
        scene.reaches_the_fault()
        editor.until(lambda: scene.shows_the_fault(ended), PATIENCE)
        recovery = time.monotonic() - ended
        left = scene.leftovers(RECOVERY_SECONDS * factor)
    slowest = None if fault.silent else beat.slowest()
    seen = editor.said(fault.said, began) if fault.said else []
    assert left == [], f"processes are left: {left}"
    _said_once(fault, seen, began, editor)
    assert recovery < RECOVERY_SECONDS * factor, f"it took {recovery:.2f} s to show the next fault"
    assert slowest is None or slowest < ANSWER_SECONDS * factor, f"an answer took {slowest:.2f} s"
    return Observation(fault.name, _words(seen, editor), slowest, recovery)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _said_once(fault: Fault, seen: list[Seen], began: float, editor: Editor) -> None:
    """Told once in each place where the user may look, and nothing else told as if it went wrong."""
    for channel in {each.channel for each in seen}:
        told = [each.text for each in seen if each.channel == channel]
        assert len(told) == 1, f"told {len(told)} times ({channel}): {told}"
    if not fault.said:
        wrong = [each for each in editor.seen if each.time >= began and each.channel in ("status", "message")]
        assert wrong == [], "told though nothing is wrong"
    for each in seen:
        assert "Traceback" not in each.text or each.channel == "log", each.text


def _words(seen: list[Seen], editor: Editor) -> str:
    """What stands in the table: the shortest of the places, since the log has more around it."""
    if not seen:
        return ""
    first = min(seen, key=lambda each: (each.channel == "log", each.time))
    text = first.text.strip().replace(str(editor.folder), "WORKSPACE").replace(str(editor.folder.parent), "HOME")
    return f"{first.channel}: {text}"


def keep(observation: Observation) -> None:
    """Write a row down for the table, where somebody makes one."""
    if name := os.environ.get(RESULTS):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(observation)) + "\n")
