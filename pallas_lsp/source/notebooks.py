"""Jupyter notebooks as one Python text: the code cells in order, each below a line that marks it.

Lines that only IPython understands (magics, shell commands, questions) become ``pass``, so that every other line keeps
its number within its cell, and its columns.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

SUFFIX = ".ipynb"
_MARK = "# %% cell {}"
_MARKED = re.compile(r"^# %% cell (\d+)$")
_MAGIC = re.compile(r"^(?P<indent>\s*)(?:(?P<target>[\w.,\s\[\]'\"]+?)\s*=\s*)?(?P<rest>[%!].*)$")
_QUESTION = re.compile(r"^(?P<indent>\s*)(?:\?{1,2}[\w.*]+|[\w.*]+\?{1,2})\s*$")
_PLACEHOLDER = re.compile(r"^\s*(?:.+ = None|pass)  # ipython (\d+)$")
_KEEPS_PYTHON = {"%%time", "%%timeit", "%%capture", "%%prun", "%%px"}
"""Cell magics whose cell is still Python."""


class NotNotebookError(ValueError):
    """The text is no Jupyter notebook; the message says why."""


@dataclass(frozen=True)
class Cell:
    """``number``: its place among all cells, from 1.  ``start``: the 0-based line of its first line in the text."""

    number: int
    start: int
    lines: int

    @property
    def end(self) -> int:
        return self.start + self.lines


@dataclass(frozen=True)
class NotebookText:
    text: str
    cells: tuple[Cell, ...]
    replaced: tuple[str, ...] = field(default=(), repr=False)
    """The lines that ``pass`` stands for, by the number in its comment."""

    def cell_at(self, line: int) -> Cell | None:
        """The cell of a line of the text; a mark belongs to the cell below it."""
        return next((cell for cell in self.cells if cell.start - 1 <= line < max(cell.end, cell.start + 1)), None)

    def sources(self, text: str) -> dict[int, str]:
        """The sources of the cells, by number, in ``text``: this text after edits."""
        found: dict[int, list[str]] = {}
        current: list[str] = []
        for line in text.split("\n"):
            if match := _MARKED.match(line):
                current = found.setdefault(int(match[1]), [])
            else:
                original = _PLACEHOLDER.match(line)
                number = int(original[1]) if original else len(self.replaced)
                current.append(self.replaced[number] if number < len(self.replaced) else line)
        return {number: "\n".join(lines) for number, lines in found.items()}


def combine(sources: Iterable[tuple[int, str]]) -> NotebookText:
    """Numbered sources of Python cells as one text."""
    lines: list[str] = []
    cells: list[Cell] = []
    replaced: list[str] = []
    for number, source in sources:
        lines.append(_MARK.format(number))
        own = _python(source.replace("\r\n", "\n").split("\n"), replaced)
        cells.append(Cell(number, len(lines), len(own)))
        lines += own
    return NotebookText("\n".join(lines), tuple(cells), tuple(replaced))


def _python(lines: list[str], replaced: list[str]) -> list[str]:
    if _parses("\n".join(lines)):
        return lines
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and first.split()[0] not in _KEEPS_PYTHON:
        return [_replace(line, "pass", replaced) if line.strip() else line for line in lines]
    result = []
    for line in lines:
        magic = _MAGIC.match(line)
        if magic is not None:
            target = magic["target"]
            what = f"{target.strip()} = None" if target else "pass"
            result.append(_replace(line, magic["indent"] + what, replaced))
        elif question := _QUESTION.match(line):
            result.append(_replace(line, question["indent"] + "pass", replaced))
        else:
            result.append(line)
    return result


def _replace(line: str, by: str, replaced: list[str]) -> str:
    replaced.append(line)
    return f"{by}  # ipython {len(replaced) - 1}"


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


# -- the file format -------------------------------------------------------------------------------------------------


def read_notebook(text: str) -> NotebookText:
    """The Python text of a notebook file; raises NotNotebookError."""
    notebook = _load(text)
    language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "python")
    code = [
        (number, _source(cell))
        for number, cell in enumerate(notebook["cells"], 1)
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    return combine(code if language == "python" else [])


def write_notebook(text: str, sources: dict[int, str]) -> str:
    """The file with other sources in its cells, and nothing else changed."""
    notebook = _load(text)
    for number, cell in enumerate(notebook["cells"], 1):
        if number in sources and sources[number] != _source(cell):
            lines = sources[number].splitlines(keepends=True)
            cell["source"] = lines if isinstance(cell["source"], list) else sources[number]
    indent = re.search(r"\n( +|\t+)\"", text)
    ended = "\n" if text.endswith("\n") else ""
    return json.dumps(notebook, indent=indent[1] if indent else None, ensure_ascii=False) + ended


def _load(text: str) -> dict[str, Any]:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotNotebookError(f"it is no JSON ({error})") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise NotNotebookError("it has no cells, as notebooks of format 4 have")
    return notebook


def _source(cell: dict[str, Any]) -> str:
    source: str | Sequence[str] = cell.get("source", "")
    return source if isinstance(source, str) else "".join(map(str, source))
