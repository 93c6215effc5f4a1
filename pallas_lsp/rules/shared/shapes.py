"""What shape an expression of a kernel has, as far as the names around it tell."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.rules.shared.user_line import Line

_SAME_SHAPE = ("astype", "copy", "conj")

Shape = Sequence[int]


def shape_of(line: Line, node: ast.expr) -> list[int] | None:
    """The shape of a name, of ``ref[...]``, or of one of these transposed or converted; None where it is not known."""
    if isinstance(node, ast.Attribute) and node.attr == "T":
        inner = shape_of(line, node.value)
        return inner[::-1] if inner is not None else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_SHAPE:
        return shape_of(line, node.func.value)
    whole = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value is Ellipsis
    fact = line.fact(node.value if whole and isinstance(node, ast.Subscript) else node)
    if fact is None or (fact.get("kind") == "ref") != whole:
        return None
    shape = fact.get("shape")
    sizes = [size for size in shape if isinstance(size, int)] if isinstance(shape, list) else None
    return sizes if sizes is not None and isinstance(shape, list) and len(sizes) == len(shape) else None


def numbers(text: str) -> list[int]:
    """The numbers of a shape as a message has it: ``(8, 128)``."""
    return [int(part) for part in text.strip("()[] ").split(",") if part.strip().isdigit()]
