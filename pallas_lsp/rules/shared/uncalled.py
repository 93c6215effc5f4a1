"""Statements that name what they mean to do and do not call it: ``copy.wait``, ``pl.when(first)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.source.syntax import FUNCTIONS, Syntax

PALLAS = "jax.experimental.pallas"
METHODS = ("start", "wait", "wait_send", "wait_recv")
DECORATORS = (f"{PALLAS}.when", f"{PALLAS}.loop", f"{PALLAS}.core_map", f"{PALLAS}.run_state")
PIPELINES = (
    f"{PALLAS}.tpu.emit_pipeline",
    f"{PALLAS}.mosaic_gpu.emit_pipeline",
    f"{PALLAS}.mosaic_gpu.emit_pipeline_warp_specialized",
)
LAUNCHES = (f"{PALLAS}.pallas_call",)


def uncalled(syntax: Syntax, inside: ast.AST | None = None) -> Iterator[ast.Attribute | ast.Call]:
    """The expressions that are statements of their own and should have been called."""
    for node in ast.walk(inside) if inside is not None else syntax.nodes:
        value = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(value, ast.Attribute | ast.Call) or syntax.function(value) is None:
            continue
        made = (
            syntax.dotted(value.func) in (*DECORATORS, *PIPELINES, *LAUNCHES) if isinstance(value, ast.Call) else False
        )
        if made or (isinstance(value, ast.Attribute) and value.attr in METHODS):
            yield value


def in_body(fault: Fault, context: Context) -> bool:
    """Whether the body of the kernel at fault has such a statement, which the fault may come from."""
    launch = launch_of(fault, context)
    found = launch.body() if launch is not None else None
    return found is not None and isinstance(found[2], FUNCTIONS) and any(uncalled(found[1], found[2]))
