"""What edits do to a text, and how that is shown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pallas_lsp.cli.sources import Sources
from pallas_lsp.model import Edit
from pallas_lsp.origins import shown_path
from pallas_lsp.source.edits import apply_edits
from pallas_lsp.source.positions import Lines, split_lines

_NEWLINE = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def edited(text: str, edits: Sequence[Edit]) -> str:
    """A text after edits, with its own line endings in what was put in."""
    newline = Lines(text).newline
    return apply_edits(text, [replace(edit, new_text=_NEWLINE.sub(newline, edit.new_text)) for edit in edits])


def make_diff(sources: Sources, cwd: str) -> str:
    """A unified diff of all changed files, as ``git apply`` and ``patch`` take it."""
    parts: list[str] = []
    for path, file in sorted(sources.changed.items()):
        parts += file_diff(shown_path(path, cwd), sources.original(path).text, file.text)
    return "".join(parts)


def file_diff(name: str, before: str, after: str) -> Iterator[str]:
    old, new = _LINE.findall(before), _LINE.findall(after)
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def changed_lines(before: str, after: str) -> list[tuple[int, str, str]]:
    """(line number, ``-`` or ``+``, line) of what differs."""
    old, new = split_lines(before), split_lines(after)
    changes: list[tuple[int, str, str]] = []
    matcher = difflib.SequenceMatcher(None, *_trimmed(old, new), autojunk=False)
    skip = _common_prefix(old, new)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            changes += [(skip + number + 1, "-", old[skip + number]) for number in range(i1, i2)]
            changes += [(skip + number + 1, "+", new[skip + number]) for number in range(j1, j2)]
    return changes


def _common_prefix(old: list[str], new: list[str]) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _trimmed(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Without what both begin and end with: files are long and edits short."""
    start = _common_prefix(old, new)
    old, new = old[start:], new[start:]
    end = _common_prefix(old[::-1], new[::-1])
    return old[: len(old) - end], new[: len(new) - end]
