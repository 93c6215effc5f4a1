"""Pipelines in the source: the call that makes one, its body, and the call that runs it."""

from __future__ import annotations

import ast
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
