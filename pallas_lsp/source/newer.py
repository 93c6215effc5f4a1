"""Syntax that the user's Python has and the one that runs Pallas LSP may lack: type parameters and ``type`` statements.

Both change nothing about how a kernel runs, so they are blanked out, at the same length, before the text is parsed.
Source: PEP 695, new in Python 3.12.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize

_STARTS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_LIKELY = re.compile(r"\btype[ \t]+\w|\b(?:def|class)[ \t]+\w+[ \t]*\[")
_BETWEEN = (tokenize.NL, tokenize.COMMENT)


def parse_module(text: str) -> ast.Module:
    """``ast.parse``; raises SyntaxError with the places of the text as it is."""
    try:
        return ast.parse(text)
    except SyntaxError:
        older = without_type_parameters(text) if sys.version_info < (3, 12) else text
        if older == text:
            raise
    return ast.parse(older)


def without_type_parameters(text: str) -> str:
    """The text with ``[T]`` of ``def`` and ``class`` and the word ``type`` of aliases blanked out."""
    if not _LIKELY.search(text):
        return text
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in _BETWEEN]
    except (tokenize.TokenError, SyntaxError):
        return text
    lines = text.splitlines(keepends=True)
    for index, (word, name, after) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if name.type != tokenize.NAME or after.string not in ("[", "="):
            continue
        before = tokens[index - 1] if index else None
        alias = word.string == "type" and (before is None or before.type in _STARTS or before.string in (";", ":"))
        if alias:  # the name moves to the front, so that the statement stays where it begins
            _replace(lines, word.start, name.end, name.string)
        if after.string == "[" and (alias or word.string in ("def", "class")):
            _replace(lines, after.start, _closing(tokens[index + 2 :]), "")
    return "".join(lines)


def _closing(tokens: list[tokenize.TokenInfo]) -> tuple[int, int]:
    """The end of the bracket that the first token opens."""
    depth = 0
    for token in tokens:
        depth += (token.string in ("[", "(", "{")) - (token.string in ("]", ")", "}"))
        if depth == 0:
            return token.end
    return tokens[0].start


def _replace(lines: list[str], start: tuple[int, int], end: tuple[int, int], new: str) -> None:
    """Put blanks, after ``new``, between two places of one line; over several lines it would be another statement."""
    if start[0] == end[0]:
        line = lines[start[0] - 1]
        lines[start[0] - 1] = line[: start[1]] + new.ljust(end[1] - start[1]) + line[end[1] :]
