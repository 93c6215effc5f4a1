"""The first stage: a file's text and what can be told of it without running it."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass

from pallas_lsp.model import Driver, Launch, Location, Position, Problem, Range, Snapshot
from pallas_lsp.source.drivers import find_drivers
from pallas_lsp.source.launches import find_launches
from pallas_lsp.source.positions import Lines
from pallas_lsp.source.syntax import parse
from pallas_lsp.source.workspace import imported_files, read_text

_NEWEST_SYNTAX = (3, 14)


class CannotRead(Exception):  # noqa: N818
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True)
class Reading:
    """``texts``: the file and the workspace files that it imports."""

    text: str
    lines: Lines
    launches: tuple[Launch, ...]
    drivers: tuple[Driver, ...]
    texts: dict[str, str]


def read(snapshot: Snapshot, path: str, longest: int | None = None) -> Reading:
    """Read a file; raises CannotRead.  ``longest``: see ``Settings``."""
    text = _text(snapshot, path)
    if longest is not None and len(text) > longest:
        message = f"the file has {len(text):,} characters; one of more than {longest:,} is not checked in an editor"
        remedy = "Move its kernels to a file of their own, or check it with 'pallas-lsp check'."
        raise CannotRead(Problem("too-long", message, remedy, Location(path, Lines(text).line_range(0))))
    lines = Lines(text)
    try:
        parse(text)
    except SyntaxError as error:
        raise CannotRead(_syntax_problem(path, lines, error)) from error
    except ValueError as error:  # null bytes, before Python 3.12
        raise CannotRead(_syntax_problem(path, lines, SyntaxError(str(error)))) from error
    launches = find_launches(path, text)
    drivers = find_drivers(snapshot, path)
    texts = {path: text, **imported_files(snapshot, path, text)} if drivers else {path: text}
    return Reading(text, lines, launches, drivers, texts)


def _text(snapshot: Snapshot, path: str) -> str:
    if path in snapshot.documents:
        return snapshot.documents[path].text
    top = Location(path, Range(Position(0, 0), Position(0, 0)))
    try:
        status = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise CannotRead(Problem("not-a-file", f"{path} is {what}", "Name a Python file.", top))
        return read_text(snapshot, path)
    except FileNotFoundError as error:
        raise CannotRead(Problem("not-found", f"{path} does not exist", "Check the path.", top)) from error
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise CannotRead(Problem("unreadable", message, "Check that you may read the file.", top)) from error
    except (SyntaxError, ValueError, LookupError) as error:  # of the coding comment, of the bytes
        message = f"{path} is no text in the encoding that it declares: {error}"
        remedy = "Save the file as UTF-8, or correct the coding comment on its first line."
        raise CannotRead(Problem("encoding", message, remedy, top)) from error


def _syntax_problem(path: str, lines: Lines, error: SyntaxError) -> Problem:
    line = max((error.lineno or 1) - 1, 0)
    # The parser counts columns of SyntaxError in code points, from 1; 0 or -1 stand for unknown.
    start = Position(line, max((error.offset or 1) - 1, 0))
    end_line = (error.end_lineno or error.lineno or 1) - 1
    end = Position(max(end_line, line), max((error.end_offset or 0) - 1, 0))
    if end <= start:
        end = Position(line, max(len(lines[line]), start.character))
    message = f"the file does not parse: {error.msg}"
    remedy = "Correct the syntax; kernels are checked then."
    if sys.version_info < _NEWEST_SYNTAX:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        remedy += f" (Pallas LSP runs on Python {version} here and does not read what only later ones allow.)"
    return Problem("syntax", message, remedy, Location(path, Range(start, end)))
