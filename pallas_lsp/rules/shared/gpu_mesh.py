"""The mesh of a Mosaic GPU launch: its axes, and the axes that the kernel's body asks for."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fault
from pallas_lsp.rules.shared.launches import Launch
from pallas_lsp.source.syntax import Syntax

_ASKS = frozenset({"jax.lax.axis_index", "jax.lax.axis_size", "jax.lax.psum", "jax._src.lax.parallel.axis_index"})


def mesh_of(fault: Fault) -> Mapping[str, Any]:
    """``grid``, ``grid_names``, ``cluster``, ``cluster_names``, ``num_threads``, ``thread_name``, where given."""
    given = fault.facts.get("given")
    found = given.get("mesh") if isinstance(given, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def axes_of(fault: Fault) -> list[str]:
    """The names of all axes of a launch."""
    mesh = mesh_of(fault)
    names: list[str] = []
    for key in ("grid_names", "cluster_names", "thread_name"):
        value = mesh.get(key)
        if isinstance(value, str):
            names.append(value)
        elif isinstance(value, Sequence):
            names += [str(v) for v in value]
    return names


def axis_names_used(launch: Launch) -> list[str]:
    """The names that the kernel's body asks for, in order, each once."""
    body = launch.body()
    if body is None:
        return []
    _, syntax, function = body
    found: list[str] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and syntax.called(node) in _ASKS:
            found += [name for name in _names(syntax, node) if name not in found]
    return found


def _names(syntax: Syntax, call: ast.Call) -> list[str]:
    given = syntax.arguments(call).get(0, "axis_name")
    value = syntax.value(given) if given is not None else None
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def names_text(names: Sequence[str]) -> str:
    """``("m", "n")``."""
    return f"({', '.join(repr_name(n) for n in names)}{',' if len(names) == 1 else ''})"


def repr_name(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
