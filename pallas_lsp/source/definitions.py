"""The top-level statements of a file by the names that they mention, bind and read.

A large file has tens of thousands of statements of which few matter, so they are found by the words of their text
first, and only those are walked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from pallas_lsp.model import Position
from pallas_lsp.source.free_names import DEFINITIONS, executed, free_names, parameter_names
from pallas_lsp.source.syntax import Syntax

_WORD = re.compile(r"[^\W\d]\w*")


@lru_cache(maxsize=16)
def mentions(syntax: Syntax) -> dict[str, list[ast.stmt]]:
    """The top-level statements whose text has a word, in order (comments and strings count)."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in syntax.tree.body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        start = syntax.lines.offset(Position(first - 1, 0))
        end = syntax.lines.offset(Position(statement.end_lineno or statement.lineno, 0))
        for word in set(_WORD.findall(syntax.text, start, end)):
            found.setdefault(word, []).append(statement)
    return found


class Definitions:
    """What the names of a file's top level refer to.  ``ignored``: statements that define nothing (a main block)."""

    def __init__(self, syntax: Syntax, ignored: Collection[ast.stmt] = ()) -> None:
        self._syntax = syntax
        self._mentions = mentions(syntax)
        self._ignored = set(ignored)
        self._reads: dict[ast.stmt, set[str]] = {}

    def closure(self, names: Iterable[str]) -> set[str]:
        """Names, and those whose definitions read one of them, directly or through others."""
        found = set(names)
        pending = list(found)
        while pending:
            name = pending.pop()
            for statement in self._mentions.get(name, ()):
                if statement in self._ignored or name not in self.reads(statement):
                    continue
                for more in bound_names(statement) - found:
                    found.add(more)
                    pending.append(more)
        return found

    def reads(self, statement: ast.stmt) -> set[str]:
        """The names that a statement takes from around it; of a fixture its parameters too, which are fixtures."""
        if statement not in self._reads:
            names = free_names(statement)
            if isinstance(statement, ast.FunctionDef) and self._is_fixture(statement):
                names |= parameter_names(statement)
            self._reads[statement] = names
        return self._reads[statement]

    def _is_fixture(self, function: ast.FunctionDef) -> bool:
        names = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
        return any("fixture" in (self._syntax.dotted(name) or "") for name in names)


def bound_names(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement binds or changes (``x = ...``, ``x[0] = ...``, ``x.append(...)``)."""
    if isinstance(statement, DEFINITIONS):
        return {statement.name}
    found: set[str] = set()
    loop_targets: set[ast.AST] = set()
    for node in executed(statement):
        if isinstance(node, ast.comprehension):
            loop_targets.update(ast.walk(node.target))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in loop_targets:
            found.add(node.id)
        elif isinstance(node, DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found |= _root(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            func = node.value.func
            if isinstance(func, ast.Attribute):
                found |= _root(func.value)
    return found


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
