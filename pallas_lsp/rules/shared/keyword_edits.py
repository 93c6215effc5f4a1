"""Small edits of a call: a keyword set, taken out, or given another value."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor


def set_keyword(
    spot: Spot | None, name: str, value: str, title: str, safety: Safety = Safety.SUGGESTED
) -> Sequence[Fix]:
    """Give a keyword of a call a value, whether it is written or not."""
    if spot is None or not isinstance(spot.node, ast.Call):
        return ()
    editor = Editor(spot.path, spot.syntax)
    given = next((k for k in spot.node.keywords if k.arg == name), None)
    if given is not None:
        editor.replace(given.value, value)
    else:
        editor.insert_argument(spot.node, f"{name}={value}")
    return (Fix(title, editor.edits(), safety),)


def remove_keyword(spot: Spot | None, name: str, title: str, safety: Safety = Safety.SUGGESTED) -> Sequence[Fix]:
    """Take a keyword out of a call."""
    if spot is None or not isinstance(spot.node, ast.Call):
        return ()
    given = next((k for k in spot.node.keywords if k.arg == name), None)
    if given is None:
        return ()
    editor = Editor(spot.path, spot.syntax)
    editor.remove_argument(spot.node, given)
    return (Fix(title, editor.edits(), safety),)


def replace(spot: Spot | None, text: str, title: str, safety: Safety = Safety.SUGGESTED) -> Sequence[Fix]:
    """Write something else for an expression."""
    if spot is None:
        return ()
    editor = Editor(spot.path, spot.syntax)
    editor.replace(spot.node, text)
    found = editor.edits()
    return (Fix(title, found, safety),) if found else ()


def wrap(spot: Spot | None, before: str, after: str, title: str, safety: Safety = Safety.SUGGESTED) -> Sequence[Fix]:
    """Write something around an expression."""
    if spot is None:
        return ()
    editor = Editor(spot.path, spot.syntax)
    start, end = editor.whole(spot.node)
    editor.insert(start, before)
    editor.insert(end, after)
    return (Fix(title, editor.edits(), safety),)


def cast(spot: Spot | None, dtype: str, title: str, safety: Safety = Safety.SUGGESTED) -> Sequence[Fix]:
    """Append ``.astype(dtype)`` to an expression; one that ends in a cast gets another type instead."""
    if spot is None:
        return ()
    node = spot.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        given = spot.syntax.argument(node, 0, "dtype")
        return replace(spot.at(given), dtype, title, safety) if given is not None else ()
    simple = isinstance(node, ast.Name | ast.Subscript | ast.Call | ast.Attribute)
    whole = Editor(spot.path, spot.syntax).whole(node) != spot.syntax.span(node)
    before, after = ("", "") if simple or whole else ("(", ")")
    return wrap(spot, before, f"{after}.astype({dtype})", title, safety)


def rename_method(spot: Spot | None, name: str, title: str, safety: Safety = Safety.SUGGESTED) -> Sequence[Fix]:
    """Call another method of the same object."""
    if spot is None or not isinstance(spot.node, ast.Call) or not isinstance(spot.node.func, ast.Attribute):
        return ()
    editor = Editor(spot.path, spot.syntax)
    editor.rename(spot.node.func, name)
    return (Fix(title, editor.edits(), safety),)
