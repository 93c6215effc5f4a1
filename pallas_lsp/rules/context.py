"""What a rule may ask besides the fault itself: the texts, the jax version, the captures, and places."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from pallas_lsp.model import (
    Capture,
    Driver,
    Fault,
    Frame,
    Location,
    Position,
    Range,
    Related,
    Site,
    Snapshot,
    WorkerInfo,
)
from pallas_lsp.source.positions import Lines
from pallas_lsp.source.syntax import Syntax, parse
from pallas_lsp.source.workspace import read_text, resolve

_RELATED_LIMIT = 4


class Context:
    """One checked snapshot, as the rules see it.  Files that are not open are read from the disk, once."""

    def __init__(
        self,
        snapshot: Snapshot,
        info: WorkerInfo | None = None,
        captures: Iterable[Capture] = (),
        drivers: Iterable[Driver] = (),
    ) -> None:
        self.snapshot = snapshot
        self.info = info
        self.captures = {capture.id: capture for capture in captures}
        self.drivers = {driver.id: driver for driver in drivers}
        self._texts: dict[str, str | None] = {}

    @property
    def jax(self) -> tuple[int, ...]:
        """The user's jax version as numbers, ``(0, 11, 2)``; empty where it is not known."""
        version = self.info.jax if self.info is not None else None
        match = re.match(r"\d+(?:\.\d+)*", version or "")
        return tuple(int(part) for part in match.group().split(".")) if match else ()

    # -- texts --------------------------------------------------------------------------------------------------------

    def text(self, path: str) -> str | None:
        """The text of a file as the user sees it; None where it cannot be read."""
        if path not in self._texts:
            try:
                self._texts[path] = read_text(self.snapshot, path)
            except (OSError, ValueError, SyntaxError):
                self._texts[path] = None
        return self._texts[path]

    def syntax(self, path: str) -> Syntax | None:
        """A file, parsed; None where it cannot be read or parsed."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return parse(text)
        except (SyntaxError, ValueError):
            return None

    def imported(self, path: str, dotted: str) -> tuple[str, Syntax, str] | None:
        """The file of the workspace that a dotted name of ``path`` is imported from: (path, syntax, last part)."""
        module, _, name = dotted.rpartition(".")
        if not module:
            return None
        for candidate in resolve(self.snapshot, path, module):
            syntax = self.syntax(candidate)
            if syntax is not None:
                return candidate, syntax, name
        return None

    def source(self, location: Location) -> str:
        """The text at a location."""
        text = self.text(location.path)
        return Lines(text).slice(location.range) if text is not None else ""

    def node(self, location: Location) -> ast.AST | None:
        """The smallest node that covers a location."""
        syntax = self.syntax(location.path)
        return syntax.node_at(location.range) if syntax is not None else None

    # -- the fault ----------------------------------------------------------------------------------------------------

    def capture(self, fault: Fault) -> Capture | None:
        return self.captures.get(fault.capture) if fault.capture is not None else None

    def kernel(self, fault: Fault) -> str:
        """The name of the kernel's body, where the fault belongs to a capture."""
        capture = self.capture(fault)
        return capture.body.name if capture is not None and capture.body is not None else ""

    def arguments(self, fault: Fault) -> tuple[str, ...]:
        capture = self.capture(fault)
        return (capture.arguments,) if capture is not None else ()

    def frames(self, fault: Fault) -> tuple[Frame, ...]:
        """The user's frames that lead to the fault, outermost first, by the most telling anchor."""
        for anchor in fault.anchors:
            frames = _workspace(anchor.frames)
            if frames:
                return frames
        for frames in (fault.frames, *(link.frames for link in fault.chain)):
            if _workspace(frames):
                return _workspace(frames)
        capture = self.capture(fault)
        if capture is not None:
            return _workspace(f for f in (capture.call, capture.launch) if f is not None)
        return ()

    def locate(self, fault: Fault) -> Location:
        """The expression at fault as far as the frames tell: the innermost place in the user's own files."""
        frames = self.frames(fault)
        if frames:
            return Location(frames[-1].path, self.frame_range(frames[-1]))
        driver = self.drivers.get(fault.driver)
        start = Position(0, 0)
        return Location(driver.path if driver is not None else "", Range(start, start))

    def frame_range(self, frame: Frame) -> Range:
        """The range of the expression that a frame was evaluating; without columns, that of its statement's line."""
        text = self.text(frame.path)
        if text is None:
            start = Position(frame.line - 1, 0)
            return Range(start, start)
        lines = Lines(text)
        exact = lines.frame_range(frame)
        if exact is not None:
            return exact
        line = lines.line_range(frame.line - 1)
        syntax = self.syntax(frame.path)
        statement = syntax.statement_at(frame.line - 1) if syntax is not None else None
        if syntax is not None and statement is not None:
            own = syntax.range(statement)
            if own.start.line == own.end.line == line.start.line:
                return own
        return line

    def related(self, fault: Fault, location: Location) -> tuple[Related, ...]:
        """How the checked file leads to a fault that stands in another file: the calls outside it, innermost first."""
        found: list[Related] = []
        seen = {location.path}
        frames = self.frames(fault)
        for frame in reversed(frames):
            if frame.path not in seen:
                seen.add(frame.path)
                place = Location(frame.path, self.frame_range(frame))
                found.append(Related(place, "It is reached through this call."))
        capture = self.capture(fault)
        if capture is not None and capture.launch is not None and capture.launch.path not in seen:
            place = Location(capture.launch.path, self.frame_range(capture.launch))
            found.append(Related(place, "The kernel is launched here."))
        return tuple(found[:_RELATED_LIMIT])


def _workspace(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames if frame.origin == "workspace")


def raised_in(fault: Fault, file: str, *functions: str) -> bool:
    """Whether jax raised the fault in a function of a file (path below site-packages), whatever the class around it."""
    return fault.site is not None and _is_site(fault.site, file, functions)


def passed_through(fault: Fault, file: str, *functions: str) -> bool:
    """Whether one of jax's own frames of the fault is in a function of a file."""
    return any(_is_site(site, file, functions) for site in _sites(fault))


def _sites(fault: Fault) -> Iterator[Site]:
    if fault.site is not None:
        yield fault.site
    yield from fault.calls


def _is_site(site: Site, file: str, functions: tuple[str, ...]) -> bool:
    return site.file == file and (not functions or any(_is_function(site.function, each) for each in functions))


def _is_function(known: str, wanted: str) -> bool:
    """Whether a function is the one that is named by the end of its qualified name.

    That is ``Class.method`` or ``outer.<locals>.inner``; Python 3.10 knows only the last part.
    """
    if "." not in known:
        wanted = wanted.rpartition(".")[2]
    return known == wanted or known.endswith(f".{wanted}")
