"""Reading a text that an author edits: its tree, its tokens, and where its parts are."""

from __future__ import annotations

import ast
import io
import random
import tokenize
from collections.abc import Callable

Edit = Callable[[str, random.Random], str]


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def tokens_of(text: str) -> list[tuple[int, int, tokenize.TokenInfo]]:
    """The tokens with their places, of a text that parses."""
    begins = starts(text)
    return [
        (begins[each.start[0] - 1] + each.start[1], begins[each.end[0] - 1] + each.end[1], each)
        for each in tokenize.generate_tokens(io.StringIO(text).readline)
        if each.string.strip()
    ]


def starts(text: str) -> list[int]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return [*starts, len(text)]


def replaced(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def place(text: str, node: ast.expr | ast.stmt) -> tuple[int, int]:
    begins, lines = starts(text), text.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return begins[line - 1] + len(lines[line - 1].encode()[:column].decode())

    assert node.end_lineno is not None and node.end_col_offset is not None
    return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)


def nodes_of(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text)))


def statements_of(text: str) -> list[ast.stmt]:
    """The statements of the top level."""
    return ast.parse(text).body


def functions_of(text: str) -> list[ast.FunctionDef]:
    """The functions of the top level."""
    return [node for node in statements_of(text) if isinstance(node, ast.FunctionDef)]


def first_line(node: ast.stmt) -> int:
    """0-based, decorators included."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1


def block_of(text: str, node: ast.stmt) -> list[str]:
    return text.splitlines(keepends=True)[first_line(node) : node.end_lineno]


def arguments_of(call: ast.Call) -> list[ast.expr | ast.stmt]:
    """In their order; a keyword counts from its name on."""
    return sorted([*call.args, *call.keywords], key=lambda each: (each.lineno, each.col_offset))  # type: ignore[list-item]


def when_it_parses(edit: Edit) -> Edit:
    def checked(text: str, source: random.Random) -> str:
        return edit(text, source) if parses(text) else text

    checked.__name__ = edit.__name__
    return checked
