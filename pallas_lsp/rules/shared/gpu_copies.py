"""Copies between GMEM and SMEM: which one is at fault, and its two sides."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.gpu_operands import PRIMITIVES, Operand, operands
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

NAMES = ("copy_gmem_to_smem", "copy_smem_to_gmem")


@dataclass(frozen=True)
class Copy:
    """``name``: the function that was called.  ``gmem`` and ``smem``: its two sides."""

    name: str
    src: Operand
    dst: Operand

    @property
    def gmem(self) -> Operand:
        return self.src if self.name == "copy_gmem_to_smem" else self.dst

    @property
    def smem(self) -> Operand:
        return self.dst if self.name == "copy_gmem_to_smem" else self.src


def copy_of(fault: Fault) -> Copy | None:
    """The copy at fault."""
    primitive = fault.equation.primitive if fault.equation is not None else None
    name = next((n for n in NAMES if n == primitive), None)
    if primitive is None:
        name = next((n for n in NAMES if passed_through(fault, PRIMITIVES, n)), None)
    found = operands(fault)
    if name is None or "src" not in found or "dst" not in found:
        return None
    return Copy(name, found["src"], found["dst"])


def converted_before_launch(context: Context, fault: Fault, ref: Spot | None, text: str, title: str) -> Fix | None:
    """A fix that gives the launch another value of an array: ``x = x.astype(...)`` before it, ``text`` after the name.

    ``ref``: the parameter of the kernel's body whose array is meant.
    """
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if launch is None or body is None or ref is None or not isinstance(ref.node, ast.Name) or body[0] != ref.path:
        return None
    binding = ref.syntax.binding(ref.node)
    names: Sequence[ast.arg] = positional(body[2])
    if binding is None or binding.node not in names:
        return None
    index = names.index(binding.node)
    arrays = launch.operands()
    array = arrays[index] if index < len(arrays) else None
    if array is None:
        return None
    syntax = array.syntax
    edits = Editor(array.path, syntax)
    statement = syntax.statement(array.node)
    if isinstance(array.node, ast.Name) and statement is not None and syntax.function(array.node) is not None:
        name = array.node.id
        edits.add_before(statement, f"{name} = {name}{text}")
        return suggested(title, edits)
    simple = isinstance(array.node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    edits.replace(array.node, f"{array.source if simple else f'({array.source})'}{text}")
    return suggested(title, edits)


_BARRIERS = {
    "barrier_wait": 0,
    "barrier_arrive": 0,
    "copy_gmem_to_smem": 2,
    "tcgen05_mma": 3,
    "tcgen05_commit_arrive": 0,
}


def barriers_in(syntax: Syntax, function: Function) -> list[str]:
    """The barriers that a function's copies and waits name, each once, as they are written."""
    found: dict[str, None] = {}
    for node in ast.walk(function):
        name = (syntax.called(node) or "").rpartition(".")[2] if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in _BARRIERS:
            given = syntax.arguments(node).get(_BARRIERS[name], "barrier")
            if given is not None and not isinstance(given, ast.Constant):
                found.setdefault(syntax.source(given))
    return list(found)
