"""Pipelines in the source: the call that makes one, its body, and the call that runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.model import Fault, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.gpu_operands import called
from pallas_lsp.rules.shared.places import Spot, call_at
from pallas_lsp.source.syntax import Function

MAKERS = ("emit_pipeline", "emit_pipeline_warp_specialized")
_POSITIONS = {"body": 0}


@dataclass(frozen=True)
class Pipeline:
    """``spot``: the call of ``plgpu.emit_pipeline``; ``run``: the call of what it made."""

    spot: Spot
    run: Spot | None

    @property
    def call(self) -> ast.Call:
        assert isinstance(self.spot.node, ast.Call)
        return self.spot.node

    @property
    def name(self) -> Location:
        return self.spot.at(self.call.func).location

    def argument(self, name: str) -> Spot | None:
        found = self.spot.syntax.argument(self.call, _POSITIONS.get(name), name)
        return self.spot.at(found) if found is not None else None

    def specs(self, *keywords: str) -> list[Spot]:
        """The block specs of a pipeline, where they are written: those of the inputs first."""
        found = []
        for keyword in keywords or ("in_specs", "out_specs"):
            given = self.argument(keyword)
            value = given.syntax.value(given.node) if given is not None else None
            pending = [value] if isinstance(value, ast.expr) else []
            while pending and given is not None:
                node = pending.pop(0)
                if isinstance(node, ast.Call):
                    found.append(given.at(node))
                elif isinstance(node, ast.BinOp):
                    pending.append(node.left)
                elif isinstance(node, ast.ListComp | ast.GeneratorExp):
                    pending.append(node.elt)
                elif isinstance(node, ast.Tuple | ast.List):
                    inner = [given.syntax.value(e) for e in node.elts]
                    pending = [e for e in inner if isinstance(e, ast.expr)] + pending
        return found

    def spec_option(self, name: str, *keywords: str) -> Spot | None:
        """What a spec of the pipeline is given as an option, the first that is."""
        for spec in self.specs(*keywords):
            for keyword in spec.node.keywords if isinstance(spec.node, ast.Call) else ():
                if keyword.arg == name:
                    return spec.at(keyword.value)
        return None

    def index_maps(self, *keywords: str) -> Iterator[tuple[Spot, ast.expr | None]]:
        """The index maps that are lambdas, each with the shape of its block."""
        for spec in self.specs(*keywords):
            given = spec.syntax.arguments(spec.node) if isinstance(spec.node, ast.Call) else None
            value = given.get(1, "index_map") if given is not None else None
            found = spec.syntax.value(value) if value is not None else None
            if given is not None and isinstance(found, ast.Lambda):
                shape = given.get(0, "block_shape")
                resolved = spec.syntax.value(shape) if shape is not None else None
                yield spec.at(found), resolved if isinstance(resolved, ast.expr) else None

    def body(self) -> Function | None:
        given = self.argument("body")
        return self.spot.syntax.callee(given.node) if given is not None else None


def pipeline_of(fault: Fault, context: Context) -> Pipeline | None:
    """The pipeline that a fault belongs to: made or run by one of the user's frames, the innermost."""
    frames = context.frames(fault)
    for index in range(len(frames) - 1, -1, -1):
        spot = call_at(context, frames, index)
        if spot is None or not isinstance(spot.node, ast.Call):
            continue
        node: ast.AST | None = spot.node
        if called(spot.syntax, spot.node) in MAKERS:
            parent = spot.syntax.parent(spot.node)
            run = spot.at(parent) if isinstance(parent, ast.Call) and parent.func is spot.node else None
            return Pipeline(spot, run)
        made = spot.syntax.value(spot.node.func)
        if isinstance(made, ast.Call) and called(spot.syntax, made) in MAKERS:
            return Pipeline(spot.at(made), spot)
        del node
    return None
