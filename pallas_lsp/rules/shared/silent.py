"""Faults that jax does not raise: what the rules for them have in common."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Frame, Location, Related, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.block_sizes import block_of
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.functions import positional, result
from pallas_lsp.rules.shared.launches import function_at, launch_of
from pallas_lsp.rules.shared.places import Spot, expression_at, frame_from
from pallas_lsp.source.syntax import Function, Syntax

PALLAS = ("jax.experimental.pallas", "pl")
NUMPY = ("jax.numpy", "jnp")


def checked(fault: Fault, check: str) -> bool:
    """Whether a check of ours found the fault."""
    return fault.silent and fault.facts.get("check") == check


def silent_finding(
    module: str,
    fault: Fault,
    context: Context,
    location: Location,
    message: str,
    related: Iterable[Related] = (),
    fixes: Iterable[Fix | None] = (),
    severity: Severity = Severity.WARNING,
) -> Finding:
    found = finding(module, fault, context, location, message, related, fixes)
    return replace(found, severity=severity)


def spot_of(fault: Fault, context: Context) -> Spot | None:
    """The expression at fault, in the user's own files."""
    frames = [f for f in context.frames(fault) if f.origin == "workspace"]
    return expression_at(context, frames[-1], len(frames) - 1) if frames else None


def narrow(spot: Spot) -> Location:
    """An expression, or the name of what is called where a call takes several lines."""
    own = spot.location
    if own.range.start.line != own.range.end.line and isinstance(spot.node, ast.Call):
        return spot.at(spot.node.func).location
    return own


def related_spots(fault: Fault, context: Context) -> Iterator[Spot]:
    """The other places that a check told of, where they are the user's own."""
    for entry in fault.facts.get("related") or ():
        frame = _innermost(entry)
        spot = expression_at(context, frame) if frame is not None else None
        if spot is not None:
            yield spot


def related(fault: Fault, context: Context, text: str) -> tuple[Related, ...]:
    """The other places that a check told of, with one text for all."""
    found = []
    for entry in fault.facts.get("related") or ():
        frame = _innermost(entry)
        if frame is not None:
            found.append(Related(Location(frame.path, context.frame_range(frame)), text))
    return tuple(found)


def _innermost(entry: Any) -> Frame | None:
    frames = [frame_from(f) for f in (entry.get("frames") if isinstance(entry, Mapping) else None) or ()]
    own = [f for f in frames if f.origin == "workspace"]
    return own[-1] if own else None


# -- blocks ----------------------------------------------------------------------------------------------------------


def index_map(fault: Fault, context: Context, facts: Mapping[str, Any]) -> tuple[Spot, Function] | None:
    """The index map of the operand that facts describe: a spot in its file, and the function."""
    block = block_of(fault, context, str(facts.get("role")), int(facts.get("index", -1)))
    given = block.argument("index_map") if block is not None else None
    near = given.node if given is not None else None
    name, _, place = str(facts.get("index_map", "")).rpartition(" at ")
    path, _, line = place.rpartition(":")
    syntax = context.syntax(path) if line.isdigit() else None
    if syntax is not None:
        node = function_at(syntax, int(line), name, near if given is not None and given.path == path else None)
        if node is not None:
            where = node.body if isinstance(node, ast.Lambda) else ast.Name(node.name)
            return Spot(path, syntax, where), node
    if given is not None:
        function = given.syntax.callee(given.node)
        if function is not None:
            return given, function
    return None


def map_element(fault: Fault, context: Context, facts: Mapping[str, Any], dimension: int) -> Spot | None:
    """What an index map returns for one dimension."""
    found = index_map(fault, context, facts)
    if found is None:
        return None
    spot, function = found
    returned = result(spot.syntax, function)
    if returned is None:
        return None
    if isinstance(returned, ast.Tuple | ast.List):
        starred = any(isinstance(e, ast.Starred) for e in returned.elts)
        return None if starred or dimension >= len(returned.elts) else spot.at(returned.elts[dimension])
    return spot.at(returned)


def grid_element(fault: Fault, context: Context, axis: int | None) -> Spot | None:
    """The expression for one axis of the launch's grid."""
    launch = launch_of(fault, context)
    grid = launch.argument("grid") if launch is not None else None
    if grid is None or axis is None:
        return None
    value = grid.syntax.value(grid.node)
    if isinstance(value, ast.Tuple | ast.List):
        if axis >= len(value.elts) or any(isinstance(e, ast.Starred) for e in value.elts):
            return None
        return grid.at(value.elts[axis])
    return grid.at(value) if axis == 0 and isinstance(value, ast.expr) and not isinstance(value, ast.Name) else None


def ordinal_axis(axis: int) -> str:
    return f"axis {axis} of the grid"


# -- the body --------------------------------------------------------------------------------------------------------


def root_name(node: ast.expr) -> ast.Name | None:
    """The name that a view of a ref starts from: ``acc`` of ``acc.at[0][...]``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def body_statement(fault: Fault, context: Context, spot: Spot) -> tuple[Syntax, Function, ast.stmt] | None:
    """The statement of the kernel's own body (not of a function in it) that an expression stands in."""
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if body is None or body[0] != spot.path or isinstance(body[2], ast.Lambda):
        return None
    function = body[2]
    previous: ast.AST = spot.node
    for parent in spot.syntax.ancestors(spot.node):
        if parent is function:
            return (spot.syntax, function, previous) if isinstance(previous, ast.stmt) else None
        previous = parent
    return None


def parameter_at(fault: Fault, context: Context, facts: Mapping[str, Any]) -> tuple[str, Function, ast.arg] | None:
    """The parameter of the kernel's body that an operand comes to: (path, function, parameter)."""
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if body is None:
        return None
    index = int(facts.get("argument", -1))
    names = positional(body[2])
    return (body[0], body[2], names[index]) if 0 <= index < len(names) else None
