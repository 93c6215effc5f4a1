"""Whether user code catches what a launch raises: a loop that tries configurations expects some of them to fail."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterable

from . import frames


def caught(error: BaseException, stack: Iterable[frames.Frame]) -> bool:
    """Whether a frame of a stack stands in a ``try`` with a handler that takes an exception."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return any(
        first <= frame["line"] <= last and (taken is None or not names.isdisjoint(taken))
        for frame in stack
        if frame["origin"] == "workspace"
        for first, last, taken in _handled("".join(linecache.getlines(frame["path"])))
    )


@functools.lru_cache(maxsize=64)
def _handled(text: str) -> list[tuple[int, int, frozenset[str] | None]]:
    """The first and last lines of the bodies of ``try`` statements, and what is caught; None for everything."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    return [
        (node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno, _taken(handler.type))
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for handler in node.handlers
    ]


def _taken(kind: ast.expr | None) -> frozenset[str] | None:
    if kind is None:
        return None
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    named = {each.id for each in kinds if isinstance(each, ast.Name)}
    return frozenset(named | {each.attr for each in kinds if isinstance(each, ast.Attribute)})
