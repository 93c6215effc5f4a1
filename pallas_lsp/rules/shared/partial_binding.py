"""``functools.partial`` that gives values by position, so that they take the places of a kernel's refs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pallas_lsp.model import Fault, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import PARTIAL, Function

_NO_REF = re.compile(r"is not subscriptable|has no attribute|does not support item assignment")


@dataclass(frozen=True)
class Bound:
    """``taken``: the parameters that get the values; ``meant``: as many at the end, which nothing indexes."""

    partial: Spot
    values: tuple[ast.expr, ...]
    taken: tuple[str, ...]
    meant: tuple[str, ...]

    def fix(self) -> Fix | None:
        editor = Editor(self.partial.path, self.partial.syntax)
        for value, name in zip(self.values, self.meant, strict=True):
            editor.replace(value, f"{name}={self.partial.syntax.source(value)}")
        return suggested("Bind by name", editor)


def bound_first(fault: Fault, context: Context) -> Bound | None:
    """What is bound by position where the fault is that a parameter for a ref is none."""
    if not fault.exception.endswith(("TypeError", "AttributeError")) or not _NO_REF.search(fault.message):
        return None
    launch = launch_of(fault, context)
    body, found = (launch.argument("kernel", "body"), launch.body()) if launch is not None else (None, None)
    call = body.syntax.value(body.node) if body is not None else None
    if body is None or found is None or not isinstance(call, ast.Call) or body.syntax.dotted(call.func) not in PARTIAL:
        return None
    path, syntax, function = found
    names, values = [parameter.arg for parameter in positional(function)], tuple(call.args[1:])
    if not values or any(isinstance(value, ast.Starred) for value in values) or len(names) < 2 * len(values):
        return None
    taken, meant = tuple(names[: len(values)]), tuple(names[-len(values) :])
    indexed = _indexed(function)
    place = context.locate(fault)
    node = syntax.node_at(place.range) if place.path == path else None
    here = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} if node is not None else set()
    if not here & set(taken) or not set(taken) <= indexed or set(meant) & indexed:
        return None
    return Bound(body.at(call), values, taken, meant)


def _indexed(function: Function) -> set[str]:
    """The names that a kernel indexes."""
    parts = [node.value for node in ast.walk(function) if isinstance(node, ast.Subscript)]
    parts = [part.value if isinstance(part, ast.Attribute) else part for part in parts]
    return {part.id for part in parts if isinstance(part, ast.Name)}
