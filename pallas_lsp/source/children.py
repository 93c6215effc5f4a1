"""The parts of a syntax node: walked for all nodes of a file at every keystroke, so this is quick."""

from __future__ import annotations

import ast


def children(node: ast.AST) -> list[ast.AST]:
    """As ``ast.iter_child_nodes``, without the contexts of names (``Load``, ``Store``), which have no parts."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found
