"""Edits that leave a program as it is, and edits that mostly leave none."""

from __future__ import annotations

import ast
import random
import re
import tokenize

import mutations
from python_text import Edit, arguments_of, nodes_of, place, replaced, tokens_of, when_it_parses

# -- layout ------------------------------------------------------------------------------------------------------------


def blank_lines(text: str, source: random.Random) -> str:
    """Empty lines in or out, where no string goes on."""
    lines = text.split("\n")
    at = source.randrange(len(lines))
    if source.random() < 0.4 and not lines[at].strip():
        return "\n".join(lines[:at] + lines[at + 1 :])
    return "\n".join(lines[:at] + [""] * source.choice([1, 1, 3]) + lines[at:])


def comment(text: str, source: random.Random) -> str:
    """A comment above or behind one line, with characters of each width."""
    lines = text.split("\n")
    at = source.choice([n for n, line in enumerate(lines) if line.strip()] or [0])
    words = source.choice(["# why: \u00e9\u4e2d\U0001f600", "# TODO", "# (", "# x = [1, 2]", "#"])
    if source.random() < 0.5:
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines.insert(at, indent + words)
    else:
        lines[at] += "  " + words
    return "\n".join(lines)


def comment_removed(text: str, source: random.Random) -> str:
    found = [(a, b) for a, b, each in tokens_of(text) if each.type == tokenize.COMMENT]
    if not found:
        return text
    start, end = source.choice(found)
    return replaced(text, start, end, "")


def spread_call(text: str, source: random.Random) -> str:
    """A call's arguments on lines of their own."""
    calls = [node for node in nodes_of(text) if isinstance(node, ast.Call) and len(arguments_of(node)) > 1]
    if not calls:
        return text
    for argument in reversed(arguments_of(source.choice(calls))):
        start, _ = place(text, argument)
        text = replaced(text, start, start, "\n" + " " * 8)
    return text


def joined_lines(text: str, source: random.Random) -> str:
    """Two lines of one bracket on one line."""
    found = [
        (a, b) for (_, a, one), (b, _, other) in zip(tokens_of(text), tokens_of(text)[1:], strict=False)
        if one.string in ("(", "[", "{", ",") and other.start[0] > one.end[0] and other.type != tokenize.COMMENT
    ]  # fmt: skip
    if not found:
        return text
    start, end = source.choice(found)
    return replaced(text, start, end, " " * source.randrange(2))


def trailing_space(text: str, source: random.Random) -> str:
    lines = text.split("\n")
    at = source.randrange(len(lines))
    lines[at] += " " * source.choice([1, 4])
    return "\n".join(lines)


# -- breaking ----------------------------------------------------------------------------------------------------------


def token_deleted(text: str, source: random.Random) -> str:
    words = list(re.finditer(r"\w+|[^\w\s]", text))
    if not words:
        return text
    match = source.choice(words)
    return replaced(text, match.start(), match.end(), "")


def token_inserted(text: str, source: random.Random) -> str:
    at = source.choice([0, *(match.end() for match in re.finditer(r"\w+|[^\w\s]", text))])
    return replaced(text, at, at, source.choice(["(", ")", "[", ":", ".", " x", ",", '"', "\n", "=", "\\"]))


def half_typed(text: str, source: random.Random) -> str:
    """The beginning of a line that is being typed."""
    lines = text.split("\n")
    at = source.choice([n for n, line in enumerate(lines) if line.startswith("    ")] or [0])
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    whole = source.choice(
        ["y = jnp.exp(x)", "o_ref[...] = x_ref[...]", "if x:", "return jnp.sum(", "plgpu.commit_smem()"]
    )
    lines.insert(at, indent + whole[: source.randrange(1, len(whole) + 1)])
    return "\n".join(lines)


def rest_deleted(text: str, source: random.Random) -> str:
    return text[: source.randrange(len(text) + 1)] if source.random() < 0.5 else ""


LAYOUT: tuple[Edit, ...] = tuple(
    map(
        when_it_parses,
        (blank_lines, comment, comment_removed, spread_call, joined_lines, trailing_space, mutations.spacing,
         mutations.comments),
    )
)  # fmt: skip
BREAKING: tuple[Edit, ...] = (token_deleted, token_inserted, half_typed, rest_deleted)
