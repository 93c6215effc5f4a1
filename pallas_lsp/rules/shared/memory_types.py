"""Descriptions of memory in the source: ``SMEM(shape, dtype)``, ``Barrier()``, ``SemaphoreType.DMA``."""

from __future__ import annotations

import ast

from pallas_lsp.source.syntax import Syntax

ARRAYS = frozenset({"SMEM", "GMEM", "TMEM", "VMEM", "HBM", "CMEM", "ACC", "WGMMAAccumulatorRef", "MemoryRef"})
"""Those that take a shape and a type."""
_OTHERS = frozenset({"Barrier", "ClusterBarrier"})
_PALLAS = ("jax.experimental.pallas.", "jax._src.pallas.")


def memory_type(syntax: Syntax, node: ast.expr) -> str | None:
    """The name of the memory type that an expression makes, or None where it makes none."""
    if isinstance(node, ast.Call):
        name = syntax.dotted(node.func) or ""
        last = name.rpartition(".")[2]
        known = last in ARRAYS | _OTHERS or ".SemaphoreType." in name
        return last if known and name.startswith(_PALLAS) else None
    name = syntax.dotted(node) or ""
    return name.rpartition(".")[2] if ".SemaphoreType." in name and name.startswith(_PALLAS) else None
