"""Whether functions of a file change what other calls of it see: then drivers are not for themselves."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from pallas_lsp.source.free_names import DEFINITIONS, free_names, parameter_names
from pallas_lsp.source.syntax import parse

_DYNAMIC = re.compile(
    r"\b(?:globals|locals|vars|exec|eval|setattr|delattr|__import__|import_module|reload)\s*\(|\bsys\.modules\b"
    r"|\bmonkeypatch\b|\bmock\b|\b__dict__\b|\bclear_caches\b"
)
_SETTINGS = frozenset({"config", "environ"})
"""Attributes that hold what all code of a process sees."""
_CHANGING = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "register",
        "remove", "reverse", "setdefault", "sort", "update", "set", "write",
    }
)  # fmt: skip


@lru_cache(maxsize=512)
def keeps_state(text: str) -> bool:
    """Whether a function of the file changes globals, objects of the top level or other modules, or may do so."""
    if is_dynamic(text):
        return True
    try:
        body = parse(text).tree.body
    except (SyntaxError, ValueError):
        return True
    found = [changes(statement) for statement in body]
    assigned = set().union(*map(assigned_names, body))
    return any(surely or not assigned.isdisjoint(objects) for surely, objects in found)


def is_dynamic(text: str) -> bool:
    """Whether a text makes names from strings, or changes modules by name."""
    return _DYNAMIC.search(text) is not None


def assigned_names(statement: ast.stmt) -> set[str]:
    """The names that a statement of the top level assigns to."""
    if isinstance(statement, (*DEFINITIONS, ast.Import, ast.ImportFrom)):
        return set()
    nodes = ast.walk(statement)
    return {name.id for name in nodes if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}


def changes(statement: ast.stmt) -> tuple[bool, frozenset[str]]:
    """Whether functions in a statement change what others see, and which names' objects they change, if these are
    assigned on the top level."""
    functions = [n for n in ast.walk(statement) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    inside = {node for function in functions for node in ast.walk(function)}
    outer = free_names(statement) if inside else set()
    given = set().union(*map(parameter_names, functions)) - {"self", "cls"}
    objects = set()
    for node in inside:
        if isinstance(node, ast.Global):
            return True, frozenset()
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if _root(node) in outer or (_of_an_object(node) and _root(node) in given):
                return True, frozenset()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            root, held = _root(node.func), node.func.value
            if root is not None and root in outer:
                if isinstance(held, ast.Attribute | ast.Name) and getattr(held, "attr", root) in _SETTINGS:
                    return True, frozenset()
                objects.add(root)
    return False, frozenset(objects)


def _of_an_object(node: ast.Attribute | ast.Subscript) -> bool:
    """Whether a place that is stored to is none of a ref or an array: an attribute, or one with a name as index."""
    return isinstance(node, ast.Attribute) or (
        isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    )


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
