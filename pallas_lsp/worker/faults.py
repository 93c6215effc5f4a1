"""From an exception to a ``Fault``: where jax raised, where the user's code is, and what only live objects know."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import re
import traceback as tracebacks
import types
from collections.abc import Iterator
from typing import Any

from . import equations, frames, know_budget, know_effects, know_operands, knowledge, libraries

_numbers = itertools.count(1)

# Specs that stand in jax's locals whatever the fault is.
_NO_ANCHOR = ("ShapeDtypeStruct", "Mesh")

# What a bug of the worker's own must never be taken for.
CONCRETE_VALUE_NEEDED = (
    "ConcretizationTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "NonConcreteBooleanIndexError",
)


def chain(error: BaseException, limit: int = 6) -> Iterator[BaseException]:
    """The exceptions that ``error`` came from, nearest first, without jax's pointers to a source place."""
    seen: set[int] = {id(error)}
    current = _before(error)
    while current is not None and id(current) not in seen and limit:
        seen.add(id(current))
        yield current
        limit -= 1
        current = _before(current)


def _before(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def describe(
    error: BaseException,
    *,
    stage: str,
    driver: str,
    capture: str | None = None,
    target: str | None = None,
    program: Any = None,
    launch: list[frames.Frame] | None = None,
) -> dict[str, Any]:
    """The protocol's ``Fault`` for an exception.

    ``program`` is the traced program of the capture, ``launch`` the user's frames of the launch, used where the
    exception's own traceback does not reach them.
    """
    own = list(frames.of_traceback(error.__traceback__))
    calls = frames.jax_calls(error.__traceback__)
    lowering = stage in ("lower", "confirm")
    at = equations.in_traceback(error.__traceback__) if lowering else ()
    if lowering and program is not None and not equations.innermost_frames(at[1:]):
        at = equations.named_in(str(error), program) or at
    facts = knowledge.of(error)
    _refine(facts.get("conflict", ()), program)
    anchors, at = _anchors(error, own, at, program)
    if facts.get("conflict"):
        places = _disagreement(facts["conflict"])
        anchors.insert(0, {"by": "layout", "frames": places})
        at = (equations.at(places[-1], program) if program is not None else ()) or at
    facts |= _program_facts(error, at, program, calls)
    anchors += [{"by": "spec", "frames": s["frames"]} for s in facts.get("specs", ()) if s["kind"] not in _NO_ANCHOR]
    if launch:
        anchors.append({"by": "launch", "frames": launch})
    return {
        "id": f"f{next(_numbers)}",
        "stage": stage,
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": message(error),
        "driver": driver,
        "site": calls[0] if calls else None,
        "calls": calls,
        "frames": [*(launch or []), *own] if not lowering else own,
        "chain": [
            {
                "exception": f"{type(link).__module__}.{type(link).__qualname__}",
                "message": message(link),
                "frames": list(frames.of_traceback(link.__traceback__)),
            }
            for link in chain(error)
        ],
        "anchors": anchors,
        "equation": equations.describe(at),
        "capture": capture,
        "target": target,
        "facts": facts,
    }


def _program_facts(
    error: BaseException, at: equations.Chain, program: Any, calls: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the traced program adds to the facts; a collector that fails adds none."""
    found: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        unknown = know_effects.foreign_ref(program) if program is not None else None
        if unknown is not None:
            found["unknown_ref"] = unknown
    with contextlib.suppress(Exception):
        operands = know_operands.of_equation(at, error)
        if operands:
            found["operands"] = operands
    with contextlib.suppress(Exception):
        found |= know_budget.facts(error, program)
    with contextlib.suppress(Exception):
        if program is not None and ("arrier" in str(error) or calls[0]["function"].endswith(".initialize")):
            found["barriers"] = know_operands.barriers(program)
    return found


def _refine(conflict: Any, program: Any) -> None:
    """Give the places of a layout conflict, which MLIR knows by their start alone, the columns of their equations."""
    for entry in conflict:
        chain = equations.at(entry["frames"][-1], program) if program is not None else ()
        entry["frames"] = equations.innermost_frames(chain) or entry["frames"]


def _disagreement(conflict: Any) -> list[frames.Frame]:
    """The place of the operation that ties the layouts together: the last that asks for none of its own."""
    relating = [entry for entry in conflict if not entry["layout"]] or list(conflict)
    places: list[frames.Frame] = max(relating, key=lambda entry: int(entry["frames"][-1]["line"]))["frames"]
    return places


SILENT = "pallas_lsp.Silent"


SHAPE_COMMENT = "pallas_lsp.ShapeComment"


def silent(check: str, places: list[frames.Frame], facts: dict[str, Any], driver: str, capture: str) -> dict[str, Any]:
    """The protocol's ``Fault`` for something that jax does not raise (see ``checks``)."""
    return _own(SILENT, "", places, {"check": check, **facts}, driver, capture)


def of_comment(error: BaseException, path: str, line: int, driver: str) -> dict[str, Any]:
    """The protocol's ``Fault`` for a shape comment whose call cannot be made, or is refused by what it calls."""
    place = {"path": path, "line": line, "function": "", "origin": "workspace"}
    return _own(SHAPE_COMMENT, summary(error), [place], {}, driver, None)


def _own(
    exception: str,
    message: str,
    places: list[frames.Frame],
    facts: dict[str, Any],
    driver: str,
    capture: str | None,
) -> dict[str, Any]:
    return {
        "id": f"f{next(_numbers)}",
        "stage": "lower" if capture is not None else "build",
        "exception": exception,
        "message": message,
        "driver": driver,
        "site": None,
        "calls": [],
        "frames": places,
        "chain": [],
        "anchors": [{"by": "program", "frames": places}],
        "equation": None,
        "capture": capture,
        "target": None,
        "facts": facts,
    }


def message(error: BaseException, limit: int = 4000) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _anchors(
    error: BaseException, own: list[frames.Frame], at: equations.Chain, program: Any
) -> tuple[list[dict[str, Any]], equations.Chain]:
    """Candidates for the place at fault, best first, and the chain of the equation at fault."""
    found: list[dict[str, Any]] = []

    def add(by: str, places: list[frames.Frame]) -> None:
        if places and all(anchor["frames"][-1] != places[-1] for anchor in found):
            found.append({"by": by, "frames": places})

    if own and own[-1].get("column") is None and program is not None:
        # A traceback that jax made from MLIR has lines only; what MLIR said, or the equation there, knows the columns.
        said = _said(error)
        on_line = (equations.at(said[0], program) if said else ()) or equations.on_line(own[-1], program)
        add("traceback", equations.innermost_frames(on_line) or own)
        at = on_line or at
    add("traceback", own)
    operation = knowledge.operation_place(error)
    exact: equations.Chain = ()
    primitive = knowledge.operation_primitive(error)
    if operation and program is not None:
        exact = equations.at(operation[0], program, primitive)
    elif program is not None and not own:
        exact = equations.of_primitive(primitive, program)
    # A rule that lowers one MLIR operation stands deeper than the equation whose module it belongs to.
    if exact:
        at = exact
        add("mlir", equations.innermost_frames(exact))
    elif operation:
        add("mlir", operation[::-1])
    if not own and not operation:
        # Verifiers name the operation in their message alone.
        in_message = _said(error)
        exact = equations.at(in_message[0], program) if in_message and program is not None else ()
        add("mlir", equations.innermost_frames(exact) or in_message[::-1])
        at = exact or at
    add("equation", equations.innermost_frames(at))
    for link in chain(error):
        places = list(frames.of_traceback(link.__traceback__))
        by = "cause" if type(link).__name__ == "JaxStackTraceBeforeTransformation" else "context"
        add(by, places)
    return found, at


def _said(error: BaseException) -> list[frames.Frame]:
    """The user's places in the first location that an error's message, or that of one it came from, names."""
    found = (frames.of_location(message(each)) for each in (error, *chain(error)))
    return next((places for places in found if places), [])


# -- a fault of Pallas, or the driver's own business -----------------------------------------------------------------


# What jax says where the machine lacks a device: nothing that the user could mend.
_NOT_HERE = re.compile(
    r"Only interpret mode is supported on CPU|Unsupported (?:TPU|GPU) device kind|No supported GPU devices found|"
    r"does not have SparseCores"
)


def is_pallas_fault(error: BaseException) -> bool:
    """Whether an exception outside every launch is still Pallas's complaint about the user's code.

    That is: a name that jax does not have, an exception raised inside Pallas, or a call of a Pallas function with
    arguments that it does not take.
    """
    if needs_concrete_value(error) or _NOT_HERE.search(message(error)):
        return False
    if isinstance(error, AttributeError):
        owner = getattr(error, "obj", None)
        if str(getattr(owner, "__name__", "")).split(".")[0] == "jax" and isinstance(owner, types.ModuleType):
            return True
    if isinstance(error, ImportError):
        return str(error.name or "").startswith("jax.")
    calls = frames.jax_calls(error.__traceback__)
    if libraries.is_raised_in_one(error):
        return libraries.is_refusal(error)
    return _raised_below_user(error, calls) or _bad_call(error) or _transforms_kernel(error)


def _raised_below_user(error: BaseException, calls: list[dict[str, Any]]) -> bool:
    if not calls:
        return False
    last = None
    entry = error.__traceback__
    while entry is not None:
        last, entry = entry, entry.tb_next
    if last is None or frames.origin(last.tb_frame.f_code.co_filename) == "workspace":
        return False
    inner = error.__traceback__
    below: list[str] = []
    while inner is not None:
        path = inner.tb_frame.f_code.co_filename
        if frames.origin(path) == "workspace":
            below = []
        elif (file := frames.jax_file(path)) is not None:
            below.append(file)
        inner = inner.tb_next
    return any("pallas" in file or "mosaic" in file for file in below)


_KERNELS = ("pallas_call", "mpmd_map", "core_map")
_TRANSFORMATIONS = ("jax/_src/interpreters/ad.py", "jax/_src/interpreters/batching.py")


def _transforms_kernel(error: BaseException) -> bool:
    """Whether jax failed to differentiate or batch a kernel that was traced before."""
    entry = error.__traceback__
    while entry is not None:
        if frames.jax_file(entry.tb_frame.f_code.co_filename) in _TRANSFORMATIONS:
            for value in list(entry.tb_frame.f_locals.values()):
                primitive = getattr(value, "primitive", value)
                if getattr(primitive, "name", None) in _KERNELS and hasattr(primitive, "multiple_results"):
                    return True
        entry = entry.tb_next
    return False


def _bad_call(error: BaseException) -> bool:
    """A TypeError that Python raised for a call of a Pallas function: no frame of jax's was entered."""
    if not isinstance(error, TypeError) or error.__traceback__ is None:
        return False
    name = str(error).split("(", 1)[0].rpartition(".")[0] or str(error).split("(", 1)[0]
    entry = error.__traceback__
    while entry.tb_next is not None:
        entry = entry.tb_next
    scope = {**vars(builtins), **entry.tb_frame.f_globals, **entry.tb_frame.f_locals}
    for value in list(scope.values()):
        inside = vars(value).values() if _is_pallas_module(value) else (getattr(value, name.split(".")[0], None),)
        for found in (value, *inside):
            candidate = found if hasattr(found, "__qualname__") else type(found)
            module = str(getattr(candidate, "__module__", ""))
            if callable(candidate) and "pallas" in module and module.startswith("jax"):
                qualname = getattr(candidate, "__qualname__", "")
                if qualname and qualname in (name, str(error).split("(", 1)[0]):
                    return True
    return False


def _is_pallas_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__.startswith("jax.experimental.pallas")


def needs_concrete_value(error: BaseException) -> bool:
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(names & set(CONCRETE_VALUE_NEEDED))


def summary(error: BaseException) -> str:
    """An exception as one line: its class and the first line of its message."""
    if type(error).__name__ in ("LaunchFailed", "BadCall"):
        return str(error)
    told = tracebacks.TracebackException(type(error), error, None, compact=True)
    told.__notes__ = None
    return list(told.format_exception_only())[-1].strip().split("\n")[0]
