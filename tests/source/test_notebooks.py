"""Notebooks as one text, and back."""

from __future__ import annotations

import ast
import json

import pytest

from pallas_lsp.source.notebooks import NotNotebookError, combine, read_notebook, write_notebook

MAGICS = "%load_ext autoreload\nfiles = !ls\nx = %sql select 1\n!echo hi\nx?\nif x:\n    %timeit x\ny = '%d' % 1"


def notebook(*cells: tuple[str, str], **fields: object) -> str:
    made = [{"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)} for kind, text in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **fields}, indent=1) + "\n"


def test_cells_below_their_marks() -> None:
    text = read_notebook(notebook(("code", "a = 1\nb = 2"), ("markdown", "# no code"), ("code", "c = 3")))
    assert text.text == "# %% cell 1\na = 1\nb = 2\n# %% cell 3\nc = 3"
    assert [(cell.number, cell.start, cell.lines) for cell in text.cells] == [(1, 1, 2), (3, 4, 1)]
    assert [cell and cell.number for cell in map(text.cell_at, range(6))] == [1, 1, 1, 3, 3, None]


def test_magics_keep_lines_and_come_back() -> None:
    text = combine([(1, MAGICS)])
    ast.parse(text.text)
    lines = text.text.split("\n")
    assert len(lines) == 1 + MAGICS.count("\n") + 1
    assert lines[2].startswith("files = None  # ")
    assert lines[7].startswith("    pass  # ")
    assert lines[8] == "y = '%d' % 1"
    assert text.sources(text.text) == {1: MAGICS}


def test_percent_and_exclamation_marks_in_strings_are_not_magics() -> None:
    source = 'text = """\n%d\n!bang\nwhat?\n"""'
    assert combine([(1, source)]).text == f"# %% cell 1\n{source}"


@pytest.mark.parametrize(("first", "python"), [("%%time", True), ("%%bash", False), ("%%html", False)])
def test_cell_magics(first: str, python: bool) -> None:
    source = f"{first}\nx = 1"
    text = combine([(1, source)])
    assert ("\nx = 1" in text.text) is python
    assert text.sources(text.text) == {1: source}


def test_edits_go_back_into_their_cells_and_nothing_else_changes() -> None:
    original = notebook(("code", "%magic\na = 1\n"), ("markdown", "é"), ("code", "b = 2\nc = 3"))
    text = read_notebook(original)
    changed = text.text.replace("b = 2\n", "b = 20\nbb = 21\n").replace("a = 1", "a = 10")
    written = write_notebook(original, text.sources(changed))
    assert written == notebook(
        ("code", "%magic\na = 10\n"), ("markdown", "é"), ("code", "b = 20\nbb = 21\nc = 3")
    ).replace("\\u00e9", "é")
    assert write_notebook(original, text.sources(text.text)) == original.replace("\\u00e9", "é")


def test_other_languages_have_no_python() -> None:
    julia = notebook(("code", "f(x) = x"), metadata={"kernelspec": {"language": "julia"}})
    assert read_notebook(julia).text == ""


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 1}', "{"])
def test_what_is_no_notebook(text: str) -> None:
    with pytest.raises(NotNotebookError):
        read_notebook(text)
