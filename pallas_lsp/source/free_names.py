"""The names that code takes from around it: what a function, class or statement of the top level refers to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.source.children import children
from pallas_lsp.source.syntax import FUNCTIONS, Function

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """The node and those in it that are evaluated with it: functions inside it, but not what is inside them."""
    stack: list[ast.AST] = [node]
    while stack:
        current = stack.pop()
        yield current
        if isinstance(current, FUNCTIONS):
            stack.extend(_outside(current))
        else:
            stack.extend(children(current))


def free_names(node: ast.AST) -> set[str]:
    """The names that a node reads and does not bind itself.

    Names bound in a comprehension or class body count as bound everywhere in the function or statement around it.
    """
    loads: set[str] = set()
    stores: set[str] = set()
    looped: set[str] = set()
    outside: set[str] = set()
    for part in _inside(node) if isinstance(node, FUNCTIONS) else executed(node):
        if isinstance(part, ast.Name):
            (loads if isinstance(part.ctx, ast.Load) else stores).add(part.id)
        elif isinstance(part, ast.comprehension):
            looped.update(n.id for n in ast.walk(part.target) if isinstance(n, ast.Name))
        elif isinstance(part, ast.Global):
            outside.update(part.names)
        elif isinstance(part, FUNCTIONS) and part is not node:
            loads |= free_names(part)
    loads -= looped
    if isinstance(node, FUNCTIONS):
        loads -= (stores | parameter_names(node)) - outside
        for part in _outside(node):
            loads |= free_names(part)
    return loads


def parameter_names(function: Function) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _inside(function: Function) -> Iterator[ast.AST]:
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    for statement in body:
        yield from executed(statement)


def _outside(function: Function) -> list[ast.AST]:
    """What of a function is evaluated where it stands: decorators and defaults."""
    found: list[ast.AST] = [*function.args.defaults, *(d for d in function.args.kw_defaults if d is not None)]
    return found if isinstance(function, ast.Lambda) else [*function.decorator_list, *found]
