"""Fixes that give a dimension another size: where its number is written, in the whole file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared import accumulators
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_MOST = 24


def shape_of(spot: Spot) -> ast.Tuple | ast.List | None:
    """The shape that an allocation is given, where it is written as a tuple; that of its start value, where it has one.

    A start value of one number everywhere is written with a shape: ``ACC.init(jnp.zeros((64, 128), jnp.float32))``.
    """
    if not isinstance(spot.node, ast.Call):
        return None
    if accumulators.initialiser(spot.syntax, spot.node) is not None:
        start = accumulators.start_value(spot.syntax, spot.node)
        made = spot.syntax.value(start) if start is not None else None
        return shape_of(spot.at(made)) if isinstance(made, ast.Call) and _is_filled(spot.syntax, made) else None
    given = spot.syntax.argument(spot.node, 0, "shape")
    value = spot.syntax.value(given) if given is not None else None
    return value if isinstance(value, ast.Tuple | ast.List) else None


def _is_filled(syntax: Syntax, made: ast.Call) -> bool:
    return syntax.dotted(made.func) in {f"jax.numpy.{name}" for name in ("zeros", "ones", "full", "empty")}


def dimension(spot: Spot | None, index: int) -> ast.expr | None:
    """The expression for one dimension of an allocation's shape."""
    shape = shape_of(spot) if spot is not None else None
    if shape is None or any(isinstance(e, ast.Starred) for e in shape.elts) or index >= len(shape.elts):
        return None
    return shape.elts[index]


def resized(spot: Spot | None, index: int, old: int, new: int, why: str) -> Iterator[Fix]:
    """Fixes that make a dimension ``new`` where it is ``old``: at the constant it is read from, else everywhere."""
    node = dimension(spot, index)
    if spot is None or new == old or new < 1:
        return
    if node is not None:
        value = spot.syntax.value(node)
        if value is not node and _is(value, old):
            edits = Editor(spot.path, spot.syntax)
            edits.replace(value, str(new))
            name = node.id if isinstance(node, ast.Name) else spot.syntax.source(node)
            fix = suggested(f"Set `{name}` to {new} ({why})", edits)
            if fix is not None:
                yield fix
    yield from everywhere(spot.path, spot.syntax, old, new, why)


def everywhere(path: str, syntax: Syntax, old: int, new: int, why: str) -> Iterator[Fix]:
    """A fix that writes one number for another in a whole file: sizes that belong together are often repeated."""
    found = [n for n in syntax.nodes if _is(n, old) and isinstance(n, ast.Constant) and not _tiles(syntax, n)]
    if not found or len(found) > _MOST:
        return
    edits = Editor(path, syntax)
    for node in found:
        edits.replace(node, str(new))
    places = "its one place" if len(found) == 1 else f"all {len(found)} places"
    fix = suggested(f"Write {new} for {old} in {places} of this file ({why})", edits)
    if fix is not None:
        yield fix


def _tiles(syntax: Syntax, node: ast.expr) -> bool:
    """Whether a number is one of a tiling or a swizzle, which are no sizes of arrays."""
    for parent in syntax.ancestors(node):
        if isinstance(parent, ast.stmt):
            break
        if isinstance(parent, ast.Call) and (syntax.called(parent) or "").endswith("Transform"):
            return True
    return False


def _is(node: ast.AST, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number


def multiple(value: int, factor: int) -> int:
    """The next multiple of ``factor`` that is not below a value."""
    return -(-value // factor) * factor
