"""What a statement says by itself, remembered by its tokens: an edit changes few statements of a file."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.source import state
from pallas_lsp.source.definitions import bound_names
from pallas_lsp.source.free_names import DEFINITIONS, free_names, parameter_names

_REMEMBERED = 8192


@dataclass(frozen=True)
class Facts:
    """``imports``: (name that is bound, module, name in it or None).  ``evaluated``: what a definition evaluates on
    import (decorators, defaults, annotations, class bodies), and the names in that."""

    bound: frozenset[str]
    reads: frozenset[str]
    imports: tuple[tuple[str, str, str | None], ...]
    evaluated: str
    evaluated_names: frozenset[str]
    assigned: frozenset[str]
    changes: bool
    changed_objects: frozenset[str]


_known: OrderedDict[str, Facts] = OrderedDict()


def facts(digest: str, statement: ast.stmt) -> Facts:
    """``digest``: of the statement's tokens."""
    found = _known.get(digest)
    if found is None:
        found = _known[digest] = _facts(statement)
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return found


def _facts(statement: ast.stmt) -> Facts:
    parts = list(heads(statement)) if isinstance(statement, DEFINITIONS) else []
    changes, objects = state.changes(statement)
    return Facts(
        frozenset(bound_names(statement)),
        _reads(statement),
        tuple(_imports(statement)),
        "\n".join(map(ast.dump, parts)),
        frozenset(n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)),
        frozenset(state.assigned_names(statement)),
        changes,
        objects,
    )


def _reads(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement takes from around it; a test's and a fixture's parameters are fixtures."""
    names = free_names(statement)
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names |= _annotated(node)
            if node.name.startswith("test") or node.decorator_list:
                names |= parameter_names(node)
        elif isinstance(node, ast.ClassDef):
            names |= {n.id for base in node.bases for n in ast.walk(base) if isinstance(n, ast.Name)}
    return frozenset(names)


def heads(node: ast.AST) -> Iterator[ast.AST]:
    """What a definition evaluates where it stands."""
    if isinstance(node, ast.ClassDef):
        yield from (*node.bases, *node.keywords, *node.decorator_list)
        for statement in node.body:
            if isinstance(statement, DEFINITIONS):
                yield from heads(statement)
            else:
                yield statement
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        yield from (*node.decorator_list, *arguments.defaults, *(d for d in arguments.kw_defaults if d is not None))
        yield from (a.annotation for a in ast.walk(arguments) if isinstance(a, ast.arg) and a.annotation is not None)
        if node.returns is not None:
            yield node.returns


def _annotated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    parts = [a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation is not None]
    parts += [node.returns] if node.returns is not None else []
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}


def _imports(statement: ast.stmt) -> Iterator[tuple[str, str, str | None]]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], alias.name, None
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield alias.asname or alias.name, module, None if alias.name == "*" else alias.name
