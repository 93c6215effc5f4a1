"""A grid made to fit the blocks of an array."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.findings import safe, suggested
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import PALLAS
from pallas_lsp.source.edits import Editor


def blocks_of(count: int, size: int) -> str:
    return f"{count} block{'' if count == 1 else 's'} of {size}"


def rounded_up(element: Spot) -> Fix | None:
    """``rows // BLOCK`` made ``pl.cdiv(rows, BLOCK)``, through a name that is only the grid's."""
    syntax = element.syntax
    node = syntax.value(element.node)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
        return None
    editor = Editor(element.path, syntax)
    function = editor.spell(f"{PALLAS[0]}.cdiv", node, PALLAS)
    if function is None:
        return None
    text = f"{function}({syntax.source(node.left)}, {syntax.source(node.right)})"
    editor.change(*editor.whole(node), text)
    return safe(f"Round up: `{text}`", editor)


def fitted(element: Spot, needed: int) -> Fix | None:
    """As many steps as there are blocks: the number, where a number is written."""
    value = element.syntax.value(element.node)
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        editor = Editor(element.path, element.syntax)
        editor.replace(value, str(needed))
        return suggested(f"Make it {needed} step{'' if needed == 1 else 's'}", editor)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and isinstance(value.right, ast.Constant):
        editor = Editor(element.path, element.syntax)
        editor.replace(value, element.syntax.source(value.left))
        return suggested(f"Leave out `+ {element.syntax.source(value.right)}`", editor)
    return None
