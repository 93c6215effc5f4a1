"""The refs of an operation at fault in the kernel writer's terms: their names in the body, the specs they came by."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pallas_lsp.model import Capture, Fault, Frame, Location, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.places import Spot, expression_at, frame_from
from pallas_lsp.source.syntax import Function, parameters

_SHORT = {"float": "f", "bfloat": "bf", "uint": "u", "int": "i", "complex": "c"}
ROLES = ("inputs", "outputs", "scratch")
_TYPE = re.compile(r"\w+\[([\d,]*)\]")
_ROLE_NAMES = {"inputs": "input", "outputs": "output", "scratch": "scratch"}


@dataclass(frozen=True)
class KernelRef:
    """A ref.  ``name``: as the body calls it; ``role`` and ``index``: which spec of the launch it came by."""

    name: str = "this ref"
    shape: tuple[int | str, ...] = ()
    dtype: str = ""
    memory_space: str = ""
    role: str = ""
    index: int = -1
    spec: Location | None = None
    made: tuple[Frame, ...] = ()

    def __str__(self) -> str:
        return f"`{self.name}`" if self is not UNKNOWN else self.name

    @property
    def type(self) -> str:
        return notation(self.dtype, self.shape)

    def made_here(self, what: str = "made") -> tuple[Related, ...]:
        return (Related(self.spec, f"`{self.name}` is {what} here."),) if self.spec is not None else ()


UNKNOWN = KernelRef()


def notation(dtype: str, shape: Sequence[int | str | None]) -> str:
    """``f32[64,128]``."""
    letters = dtype.rstrip("0123456789")
    short = _SHORT.get(letters, letters) + dtype[len(letters) :]
    return f"{short}[{','.join(str(d) for d in shape)}]"


def of(fault: Fault, context: Context) -> tuple[KernelRef, ...]:
    """The refs among a fault's ``operands``."""
    entries = [e for e in fault.facts.get("operands", ()) if isinstance(e, Mapping) and "memory_space" in e]
    return tuple(_described(entry, fault, context) for entry in entries)


def _described(entry: Mapping[str, Any], fault: Fault, context: Context) -> KernelRef:
    shape = tuple(entry.get("shape") or ())
    space = str(entry.get("memory_space", ""))
    index = entry.get("argument")
    made = entry.get("allocation") or {}
    frames = tuple(frame_from(f) for f in made.get("frames") or ())
    spec = frames[-1] if frames else None
    role, number, name = "", -1, ""
    if not isinstance(index, int):
        index = _of_frames(fault, context, frames)
    if isinstance(index, int):
        role, number = position(fault, index, context)
        name = parameter_name(fault, context, index) or f"{_ROLE_NAMES.get(role, 'input')} {number}"
        given = spec_of(fault, role, number)
        frames = frames or tuple(frame_from(f) for f in given.get("frames") or ())
        spec = frames[-1] if frames else None
        space = space if space not in ("", "default", "gmem") else str(given.get("memory_space", space))
    place = None
    if spec is not None and spec.origin == "workspace":
        place = Location(spec.path, context.frame_range(spec))
    return KernelRef(name or "this ref", shape, str(entry.get("dtype", "")), space, role, number, place, frames)


def _of_frames(fault: Fault, context: Context, frames: Sequence[Frame]) -> int | None:
    """The argument of the body that a scratch was allocated for, by the place where it was made."""
    given = fault.facts.get("given") or {}
    places = [(spec.get("frames") or [None])[-1] for spec in given.get("scratch") or ()]
    at = [i for i, place in enumerate(places) if place is not None and frames and _same(place, frames[-1])]
    if len(at) != 1:
        return None
    inputs, outputs = _counts(fault, context)
    return int(given.get("prefetched", 0)) + inputs + outputs + at[0]


def _same(fact: Mapping[str, Any], frame: Frame) -> bool:
    return (fact.get("path"), fact.get("line"), fact.get("column")) == (frame.path, frame.line, frame.column)


def _counts(fault: Fault, context: Context) -> tuple[int, int]:
    """How many inputs (those that are prefetched not counted) and outputs a launch has, as far as the facts tell."""
    given = fault.facts.get("given") or {}
    launch = fault.facts.get("launch") or {}
    capture = context.capture(fault)
    inputs = _argument_count(capture) - int(given.get("prefetched", 0)) if capture is not None else 0
    outputs = len(given.get("outputs") or launch.get("outputs") or ()) or 1
    return (inputs if inputs > 0 else len(given.get("inputs") or ())), outputs


def position(fault: Fault, argument: int, context: Context) -> tuple[str, int]:
    """(role, index among the specs of that role) of an argument of the body."""
    given = fault.facts.get("given") or {}
    index = argument - int(given.get("prefetched", 0))
    if index < 0:
        return "prefetched", argument
    inputs, outputs = _counts(fault, context)
    if index < inputs:
        return "inputs", index
    if index - inputs < outputs:
        return "outputs", index - inputs
    return "scratch", index - inputs - outputs


def _argument_count(capture: Capture) -> int:
    """How many arrays a launch got, from their types: ``f32[8,8], i32[]``."""
    depth, count = 0, 1 if capture.arguments.strip() else 0
    for char in capture.arguments:
        depth += (char in "[(<{") - (char in "])>}")
        count += char == "," and depth == 0
    return count


def spec_of(fault: Fault, role: str, index: int) -> Mapping[str, Any]:
    """The spec given for an operand: a dictionary as the fact ``given`` has it, empty where there was none."""
    specs = (fault.facts.get("given") or {}).get(role) or ()
    return specs[index] if 0 <= index < len(specs) else {}


def spec_spot(fault: Fault, context: Context, role: str, index: int) -> Spot | None:
    """The expression that made an operand's spec, in the user's own files."""
    frames = [frame_from(f) for f in spec_of(fault, role, index).get("frames") or ()]
    for frame in reversed(frames):
        if frame.origin == "workspace":
            return expression_at(context, frame)
    return None


def body_function(fault: Fault, context: Context) -> tuple[Function, Spot] | None:
    """The kernel's body in the source."""
    capture = context.capture(fault)
    if capture is None or capture.body is None:
        return None
    syntax = context.syntax(capture.body.path)
    if syntax is None:
        return None
    for node in syntax.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= capture.body.line <= node.lineno and node.name == capture.body.name:
                marker = node.body[0]
                expression = marker.value if isinstance(marker, ast.Expr) else ast.Name(node.name)
                return node, Spot(capture.body.path, syntax, expression)
    return None


def parameter_name(fault: Fault, context: Context, argument: int) -> str:
    """What the body calls its argument number ``argument``."""
    found = body_function(fault, context)
    if found is None:
        return ""
    function = found[0]
    positional = [p for p in parameters(function) if p not in function.args.kwonlyargs]
    return positional[argument].arg if argument < len(positional) else ""


def array_shape(fault: Fault, context: Context, ref: KernelRef) -> tuple[int, ...]:
    """The shape of the array that an input's block is of; empty where it is not known."""
    capture = context.capture(fault)
    if capture is None or ref.role != "inputs":
        return ()
    prefetched = int((fault.facts.get("given") or {}).get("prefetched", 0))
    types = _TYPE.findall(capture.arguments)
    index = ref.index + prefetched
    return tuple(int(d) for d in types[index].split(",") if d.strip()) if index < len(types) else ()
