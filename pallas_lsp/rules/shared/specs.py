"""The BlockSpec and the index map that a fault is about, in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pallas_lsp.model import Fault, Location, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.launches import BLOCK_SPEC, Launch, born, function_at, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.wording import shape_text
from pallas_lsp.source.syntax import Function, Syntax

_ORIGIN = re.compile(r"(args|outputs)(.*)")


@dataclass(frozen=True)
class Spec:
    """The BlockSpec that jax was looking at.  ``spot``: the call that made it, where known."""

    context: Context
    fault: Fault
    facts: Mapping[str, Any]
    spot: Spot | None
    launch: Launch | None

    @property
    def is_output(self) -> bool:
        return str(self.facts.get("origin", "")).startswith("outputs")

    @property
    def path(self) -> str:
        match = _ORIGIN.match(str(self.facts.get("origin", "")))
        return match.group(2) if match else ""

    @property
    def index(self) -> int | None:
        """The position of the operand among the inputs or outputs; None for one that is not in a flat sequence."""
        match = re.fullmatch(r"\[(\d+)\]", self.path)
        if match:
            return int(match.group(1))
        return 0 if not self.path and self.is_output else None

    @property
    def array_shape(self) -> list[Any]:
        shape = (self.facts.get("array") or {}).get("shape")
        return list(shape) if isinstance(shape, list | tuple) else []

    @property
    def block_shape(self) -> list[Any] | None:
        shape = self.facts.get("block_shape")
        return list(shape) if isinstance(shape, list | tuple) else None

    @property
    def what(self) -> str:
        """``input 0 (`x`)``, ``output 1``, ``the output``."""
        number = self.index
        if self.is_output:
            outputs = self.launch.facts.get("outputs") if self.launch is not None else None
            if number is None or (isinstance(outputs, list) and len(outputs) == 1):
                return "the output"
            return f"output {number}"
        operand = self.operand()
        name = f" (`{short(operand.source, 30)}`)" if operand is not None else ""
        return f"input {number}{name}" if number is not None else f"input `args{self.path}`"

    def operand(self) -> Spot | None:
        """The expression of the input that the spec is for."""
        if self.is_output or self.launch is None or self.index is None:
            return None
        operands = self.launch.operands()
        return operands[self.index] if self.index < len(operands) else None

    def argument(self, name: str) -> Spot | None:
        """``block_shape`` or ``index_map``, as the BlockSpec call gives it."""
        if self.spot is None or not isinstance(self.spot.node, ast.Call):
            return None
        found = self.spot.syntax.argument(self.spot.node, BLOCK_SPEC.index(name), name)
        return self.spot.at(found) if found is not None else None

    def index_map(self) -> tuple[str, Syntax, Function] | None:
        """The index map's function: (path, syntax, node)."""
        fact = self.facts.get("index_map")
        if not isinstance(fact, Mapping) or fact.get("origin") != "workspace":
            return None
        path, line = str(fact.get("path")), fact.get("line")
        syntax = self.context.syntax(path)
        if syntax is None or not isinstance(line, int):
            return None
        given = self.argument("index_map")
        near: ast.AST | None = None
        if given is not None and given.path == path:
            near = given.node
        elif self.spot is not None and self.spot.path == path:
            near = self.spot.node
        node = function_at(syntax, line, str(fact.get("function")), near, fact.get("parameters") or ())
        return (path, syntax, node) if node is not None else None

    def place(self) -> Location:
        """The BlockSpec as a whole, else the argument that holds it, else the launch."""
        if self.spot is not None:
            return self.spot.location
        if self.launch is not None:
            given = self.launch.argument("out_specs" if self.is_output else "in_specs")
            return given.location if given is not None else self.launch.name
        return self.context.locate(self.fault)

    def related_array(self) -> tuple[Related, ...]:
        """Where the array's shape comes from."""
        text = f"This array has the shape {shape_text(self.array_shape)}."
        operand = self.operand()
        if operand is not None:
            return (Related(operand.location, text),)
        if self.is_output and self.launch is not None:
            out = self.launch.part(self.path, self.launch.output) or self.launch.argument(self.launch.output)
            if out is not None:
                return (Related(out.location, text),)
        return ()


def spec_of(fault: Fault, context: Context) -> Spec | None:
    """The BlockSpec that ``to_block_mapping`` was working on when it raised."""
    facts = fault.facts.get("spec")
    if not isinstance(facts, Mapping):
        return None
    launch = launch_of(fault, context)
    spot = born(context, facts.get("frames"))
    spec = Spec(context, fault, facts, spot, launch)
    if spot is None and launch is not None:
        path = spec.path
        if not spec.is_output and spec.index is not None:
            path = f"[{spec.index - int(launch.facts.get('scalar_prefetch') or 0)}]"
        part = launch.part(path, "out_specs" if spec.is_output else "in_specs")
        if part is not None and isinstance(part.node, ast.Call):
            spec = Spec(context, fault, facts, part, launch)
    return spec
