"""The launch that a fault belongs to, in the source: its arguments, specs, operands and the kernel's body."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pallas_lsp.model import Fault, Frame, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.places import Spot, call_at, expression_at, follow, frame_from, steps
from pallas_lsp.source.syntax import FUNCTIONS, PARTIAL, Arguments, Function, Syntax

_POSITIONS: dict[str, tuple[str, ...]] = {
    "pl.pallas_call": ("kernel", "out_shape"),
    "pl.kernel": ("body", "out_type"),
    "plgpu.kernel": ("body", "out_shape"),
}
_GRID_SPEC = ("grid", "in_specs", "out_specs", "scratch_shapes")
_PREFETCH_GRID_SPEC = ("num_scalar_prefetch", *_GRID_SPEC)
BLOCK_SPEC = ("block_shape", "index_map")
OUTPUT = {"pl.pallas_call": "out_shape"}
SCRATCH = {"pl.pallas_call": "scratch_shapes"}


@dataclass(frozen=True)
class Launch:
    """``pl.pallas_call(...)`` as it stands in the source.  ``frames``: the user's frames that lead to its call."""

    context: Context
    fault: Fault
    api: str
    spot: Spot
    frames: tuple[Frame, ...]

    @property
    def call(self) -> ast.Call:
        assert isinstance(self.spot.node, ast.Call)
        return self.spot.node

    @property
    def syntax(self) -> Syntax:
        return self.spot.syntax

    @property
    def facts(self) -> Mapping[str, Any]:
        found = self.fault.facts.get("launch")
        return found if isinstance(found, Mapping) else {}

    @property
    def output(self) -> str:
        """The keyword that gives the outputs' types."""
        return OUTPUT.get(self.api, "out_type")

    @property
    def scratch(self) -> str:
        """The keyword that gives the scratch types."""
        return SCRATCH.get(self.api, "scratch_types")

    @property
    def name(self) -> Location:
        """The name of what is called: the range for what concerns the launch as a whole."""
        func: ast.expr = self.call.func
        if self.syntax.dotted(func) in PARTIAL and self.call.args:
            func = self.call.args[0]
        return Location(self.spot.path, self.syntax.range(func))

    def arguments(self) -> Arguments:
        given = self.syntax.arguments(self.call)
        if self.syntax.dotted(self.call.func) in PARTIAL:
            return Arguments(given.positional[1:], given.keywords, given.complete)
        return given

    def argument(self, *names: str) -> Spot | None:
        """The first of some arguments that is given, also within ``grid_spec``."""
        given = self.arguments()
        positions = _POSITIONS.get(self.api, ())
        if _is_decorator(self.syntax, self.call):
            positions = positions[1:]
        for name in names:
            position = positions.index(name) if name in positions else None
            found = given.get(position, name)
            if found is not None:
                return self.spot.at(found)
        forwarded = self._forwarded(names)
        if forwarded is not None:
            return forwarded
        spec = self.grid_spec()
        if spec is None or not isinstance(spec.node, ast.Call):
            return None
        called = (spec.syntax.called(spec.node) or "").rpartition(".")[2]
        order = _GRID_SPEC if called == "GridSpec" else _PREFETCH_GRID_SPEC
        inner = spec.syntax.arguments(spec.node)
        for name in names:
            found = inner.get(order.index(name) if name in order else None, name)
            if found is not None:
                return spec.at(found)
        return None

    def _forwarded(self, names: Sequence[str]) -> Spot | None:
        """An argument that came through ``**options`` of the function around the launch."""
        depth = self.spot.depth
        for keyword in self.call.keywords:
            value = keyword.value
            if keyword.arg is not None or not isinstance(value, ast.Name) or depth <= 0:
                continue
            binding = self.syntax.binding(value)
            function = self.syntax.function(self.call)
            if binding is None or function is None or function.args.kwarg is not binding.node:
                continue
            outer = call_at(self.context, self.frames, depth - 1)
            if outer is None or not isinstance(outer.node, ast.Call):
                continue
            given = outer.syntax.arguments(outer.node).keywords
            for name in names:
                if name in given:
                    return outer.at(given[name])
        return None

    def grid_spec(self) -> Spot | None:
        """The call that made the grid spec."""
        given = self.arguments().keywords.get("grid_spec")
        if given is None:
            return None
        spot, _ = follow(self.context, self.frames, self.spot.at(given), ())
        value = spot.syntax.value(spot.node)
        if isinstance(value, ast.Call):
            return spot.at(value)
        return born(self.context, self.facts.get("frames"))

    def part(self, path: str, *names: str) -> Spot | None:
        """The expression for one leaf of an argument: ``part("[1]", "in_specs")``."""
        start = self.argument(*names)
        if start is None:
            return None
        spot, rest = follow(self.context, self.frames, start, steps(path))
        return spot if not rest else None

    def operands(self) -> list[Spot]:
        """The expressions that the launch is called with; empty where they cannot be told."""
        call = self.run()
        if call is None:
            return []
        given = call.syntax.arguments(call.node) if isinstance(call.node, ast.Call) else None
        return [call.at(node) for node in given.positional] if given is not None and given.complete else []

    def run(self) -> Spot | None:
        """The call that runs the kernel: ``pl.pallas_call(...)(x, y)``."""
        capture = self.context.capture(self.fault)
        frame = capture.call if capture is not None else None
        spot = expression_at(self.context, frame) if frame is not None else None
        if spot is not None and isinstance(spot.node, ast.Call) and spot.node is not self.call:
            return spot
        parent = self.syntax.parent(self.call)
        called = isinstance(parent, ast.Call) and parent.func is self.call
        return self.spot.at(parent) if called and isinstance(parent, ast.Call) else None

    def body(self) -> tuple[str, Syntax, Function] | None:
        """The function that is the kernel: (path, syntax, node)."""
        capture = self.context.capture(self.fault)
        if capture is None or capture.body is None:
            return None
        body = capture.body
        syntax = self.context.syntax(body.path)
        if syntax is None:
            return None
        near = self.argument("kernel", "body")
        node = function_at(syntax, body.line, body.name, near.node if near and near.path == body.path else None)
        return (body.path, syntax, node) if node is not None else None


def launch_of(fault: Fault, context: Context) -> Launch | None:
    """The launch of a fault's capture, where it stands in the user's files."""
    capture = context.capture(fault)
    if capture is None or capture.launch is None or capture.launch.origin != "workspace":
        return None
    spot = expression_at(context, capture.launch)
    if spot is None:
        return None
    node: ast.AST | None = spot.node if isinstance(spot.node, ast.Call) else spot.syntax.call(spot.node)
    if not isinstance(node, ast.Call):
        return None
    frames = next((a.frames for a in reversed(fault.anchors) if a.by == "launch"), ())
    frames = tuple(f for f in frames if f.origin == "workspace")
    depth = len(frames) - 1 if frames and frames[-1].path == spot.path else -1
    return Launch(context, fault, capture.api, Spot(spot.path, spot.syntax, node, depth), frames)


def born(context: Context, frames: object) -> Spot | None:
    """The expression that made a spec, from the frames of a fact."""
    if not isinstance(frames, Sequence) or not frames or not isinstance(frames[-1], Mapping):
        return None
    frame = frame_from(frames[-1])
    return expression_at(context, frame) if frame.origin == "workspace" else None


def function_at(
    syntax: Syntax, line: int, name: str, near: ast.AST | None = None, takes: Sequence[str] = ()
) -> Function | None:
    """The function whose code starts on a line; of several lambdas there the one inside ``near``, or that ``takes``."""
    if near is not None and isinstance(near, ast.expr):
        own = syntax.callee(near)
        if own is not None and _starts_on(own, line):
            return own
        inside = [n for n in ast.walk(near) if isinstance(n, FUNCTIONS) and _starts_on(n, line)]
        if len(inside) == 1:
            return inside[0]
    found = [
        node
        for node in syntax.nodes
        if isinstance(node, FUNCTIONS)
        and _starts_on(node, line)
        and (name == "<lambda>") == isinstance(node, ast.Lambda)
        and (isinstance(node, ast.Lambda) or node.name == name)
    ]
    if len(found) > 1 and name == "<lambda>":
        found = [node for node in found if [p.arg for p in (*node.args.posonlyargs, *node.args.args)] == list(takes)]
    return found[0] if len(found) == 1 or (found and name != "<lambda>") else None


def _starts_on(function: Function, line: int) -> bool:
    lines = {function.lineno, *(d.lineno for d in getattr(function, "decorator_list", ()))}
    return line in lines


def _is_decorator(syntax: Syntax, call: ast.Call) -> bool:
    parent = syntax.parent(call)
    return isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and call in parent.decorator_list
