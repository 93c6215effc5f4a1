"""Code that asks which jax it runs on: what stands there may be meant for another version."""

from __future__ import annotations

import ast

from pallas_lsp.source.syntax import Syntax

_CATCHING = {"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError", "Exception", "BaseException"}
_ASKING = ("hasattr", "getattr", "version", "VERSION", "signature", "TYPE_CHECKING", "find_spec")


def guarded(syntax: Syntax, node: ast.AST) -> bool:
    """Whether a node stands in a ``try`` that catches its failure, or under a test for a version or a name."""
    for parent in syntax.ancestors(node):
        if isinstance(parent, ast.Try) and any(_catches(handler) for handler in parent.handlers):
            return True
        if isinstance(parent, ast.If | ast.IfExp | ast.While) and _asks(syntax, parent.test):
            return True
        if isinstance(parent, ast.BoolOp) and any(_asks(syntax, value) for value in parent.values):
            return True
        if isinstance(parent, ast.With) and any("suppress" in syntax.source(i.context_expr) for i in parent.items):
            return True
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(n, ast.Name) and n.id in _CATCHING for n in names)


def _asks(syntax: Syntax, test: ast.expr) -> bool:
    text = syntax.source(test)
    return any(word in text for word in _ASKING)
