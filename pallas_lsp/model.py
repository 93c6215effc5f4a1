"""The data that passes between the parts: plain, frozen, and without any import of ours.

Columns are counted in code points (Python ``str`` indices) in ``Position`` and in UTF-8 bytes in ``Frame``, which is
what CPython and MLIR give; ``pallas_lsp.source.positions`` is the only place that converts.  Lines are 0-based in
``Position`` and 1-based in ``Frame``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


class Stage(StrEnum):
    """How far a kernel was taken, cheapest first."""

    READ = "read"
    BUILD = "build"
    TRACE = "trace"
    LOWER = "lower"
    CONFIRM = "confirm"


class Backend(StrEnum):
    MOSAIC_GPU = "mosaic_gpu"
    TRITON = "triton"
    TPU = "tpu"
    ANY = "any"


class Safety(StrEnum):
    """``safe``: behaviour is what was meant.  ``suggested``: the meaning may change, and the title says how."""

    SAFE = "safe"
    SUGGESTED = "suggested"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    line: int
    character: int


@dataclass(frozen=True, slots=True, order=True)
class Range:
    start: Position
    end: Position


@dataclass(frozen=True, slots=True, order=True)
class Location:
    path: str
    range: Range


# -- what is read from text ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    """A file as the user sees it.  ``version`` is the editor's; None for a file read from disk."""

    path: str
    text: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The open documents at one moment, by absolute path, and the workspace folders.

    ``memo``: what was found out about files on the disk, which is forgotten after moments (``source/workspace.py``).
    """

    documents: Mapping[str, Document] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Launch:
    """A place that launches a kernel: ``plgpu.kernel(...)``, ``pl.pallas_call(...)``, ..."""

    location: Location
    api: str
    backend: Backend
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Driver:
    """Something that reaches a launch with real argument types.

    ``kind`` is ``module`` (the file's top level), ``main`` (its main block), ``test`` (a test function, ``name``, or a
    method, ``Class.name``), ``pytest`` (such a test of another file, or ``Class.``: what it inherits), ``call`` and
    ``guess`` (``name``: calls with types).  ``lines``: for ``module``, the 1-based first lines of the top-level
    statements that are evaluated abstractly because they compute arrays for a launch; for ``main``, of its statements
    that are left out.  ``target``: the GPU or TPU that
    answers while it runs, where that is not the file's own.
    """

    id: str
    kind: str
    path: str
    name: str = ""
    lines: tuple[int, ...] = ()
    target: str = ""


# -- what the worker reports -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in Python source.  ``origin``: ``workspace`` (the user's) or ``library`` (site-packages, jax's ops)."""

    path: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""
    origin: str = "workspace"


@dataclass(frozen=True, slots=True)
class Site:
    """A place inside jax: ``file`` relative to site-packages, with forward slashes."""

    file: str
    function: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """One exception of a chain (cause or context)."""

    exception: str
    message: str
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Equation:
    """The equation of the traced program that was being lowered.  Types are in JAX's notation (``f32[64,128]``)."""

    primitive: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A candidate for the place at fault.  ``by``: traceback, cause, equation, mlir, layout, budget.

    ``frames`` are the user's, outermost first; the last is the place itself.
    """

    by: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Body:
    """The unwrapped body of a kernel: its identity."""

    path: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A call of a function of the launching file, as a shape comment says it; ``line`` is the function's first."""

    path: str
    line: int
    call: str


@dataclass(frozen=True, slots=True)
class Capture:
    """One launch reached by one driver.  ``arguments`` in JAX's notation, ``bf16[512,256], f32[]``.

    ``part``: of a main block, the first line of the statement that reached it, while that is known.
    """

    id: str
    api: str
    backend: Backend
    driver: str
    arguments: str
    launch: Frame | None = None
    call: Frame | None = None
    body: Body | None = None
    entry: Entry | None = None
    targets: tuple[str, ...] = ()
    stage: Stage = Stage.BUILD
    seconds: float = 0.0
    resources: Mapping[str, Any] = field(default_factory=dict)
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong, as facts.

    ``site`` is where jax raised (innermost jax frame), ``calls`` jax's frames from the innermost outwards, ``chain``
    the causes and contexts.  ``facts`` holds what only live objects knew (see ``docs/protocol.md``).
    """

    id: str
    stage: Stage
    exception: str
    message: str
    driver: str
    site: Site | None = None
    calls: tuple[Site, ...] = ()
    frames: tuple[Frame, ...] = ()
    chain: tuple[Link, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    equation: Equation | None = None
    capture: str | None = None
    target: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def silent(self) -> bool:
        """Whether jax accepts the program: a check of ours found it (``facts["check"]`` names the check)."""
        return self.exception == "pallas_lsp.Silent"


@dataclass(frozen=True, slots=True)
class DriverOutcome:
    """How a driver ended.  ``error`` is the driver's own exception (no finding), with the line where it stopped."""

    driver: str
    finished: bool
    error: str = ""
    frame: Frame | None = None
    mode: str = "abstract"


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What the worker's handshake says of the interpreter it runs in."""

    protocol: int
    python: str
    executable: str
    jax: str | None
    backends: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


# -- what the rules say ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edit:
    path: str
    range: Range
    new_text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """``verified`` is None until it was tried.

    ``reason`` says why a tried fix does not hold, and of one that holds which fault shows behind the mended one.
    """

    title: str
    edits: tuple[Edit, ...]
    safety: Safety = Safety.SUGGESTED
    verified: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Related:
    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    location: Location
    message: str
    severity: Severity = Severity.ERROR
    stage: Stage = Stage.TRACE
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
    kernel: str = ""
    arguments: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be checked: what happened (``message``) and what to do (``remedy``)."""

    kind: str
    message: str
    remedy: str = ""
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class LaunchStatus:
    """A launch, the captures that reached it, and else the reason why none did and what to do (``remedy``).

    Where all captures have assumed types, ``reason`` says what stopped the drivers that have true ones.
    """

    launch: Launch
    captures: tuple[Capture, ...] = ()
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of one file after ``stage``; ``final`` when no later stage will replace it."""

    path: str
    version: int | None
    stage: Stage
    final: bool
    findings: tuple[Finding, ...] = ()
    launches: tuple[LaunchStatus, ...] = ()
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0
