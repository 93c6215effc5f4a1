"""The comment that silences a rule on a line."""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Edit, Finding, Position, Range
from pallas_lsp.source.syntax import parse

_IGNORE = re.compile(r"#\s*pallas-lsp:\s*ignore(?P<list>\[(?P<rules>[^\]]*)\])?")


def silencing_edit(finding: Finding, text: str) -> Edit | None:
    """The edit that adds the comment on the finding's first line, or on its last where the first takes none (it ends
    inside a string or with a backslash); None where neither does."""
    try:
        syntax = parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    path, rule = finding.location.path, finding.rule
    range_ = finding.location.range
    for line in dict.fromkeys((range_.start.line, range_.end.line)):
        content = syntax.lines[line]
        comment = syntax.comments.get(line)
        if comment is not None:
            start = content.rindex(comment)
            match = _IGNORE.search(comment)
            if match is None:
                return _insert(path, line, len(content.rstrip()), f"  # pallas-lsp: ignore[{rule}]")
            if match["list"] is None:
                return None  # silences every rule already
            separator = ", " if match["rules"].strip() else ""
            return _insert(path, line, start + match.end("rules"), f"{separator}{rule}")
        edit = _insert(path, line, len(content.rstrip()), f"  # pallas-lsp: ignore[{rule}]")
        if _changes_nothing(text, edit):
            return edit
    return None


def _insert(path: str, line: int, character: int, text: str) -> Edit:
    place = Position(line, character)
    return Edit(path, Range(place, place), text)


def _changes_nothing(text: str, edit: Edit) -> bool:
    """Whether the text is the same program afterwards."""
    before = parse(text)
    offset = before.lines.offset(edit.range.start)
    try:
        after = ast.parse(text[:offset] + edit.new_text + text[offset:])
    except (SyntaxError, ValueError, RecursionError):
        return False
    return ast.dump(before.tree) == ast.dump(after)
