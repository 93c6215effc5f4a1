"""Which open documents import which file."""

from __future__ import annotations

import pytest
from lsprotocol import types

from pallas_lsp.server.dependents import Dependents
from pallas_lsp.server.documents import Documents


@pytest.fixture
def workspace(tmp_path):
    documents = Documents()
    documents.set_folders([tmp_path.as_uri()])

    def write(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / name.replace("__SLASH__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".py").write_text(text)

    def open_(name: str, text: str) -> str:
        path = tmp_path / name
        documents.open(types.TextDocumentItem(path.as_uri(), "python", 1, text))
        return str(path)

    return documents, write, open_, tmp_path


@pytest.mark.parametrize(
    "statement",
    [
        "import helper",
        "import os, helper as h",
        "from helper import x",
        "    from helper import (\n        x,\n        y,\n    )",
        "from . import helper",
        "from . import (other, helper as h)  # comment",
        "from .helper import x",
        "import broken syntax (\nimport helper",
    ],
)
def test_imports_in_all_spellings(workspace, statement):
    documents, write, open_, folder = workspace
    write(helper="")
    path = open_("main.py", statement + "\n")
    assert str(folder / "helper.py") in Dependents(documents).closure(path)


def test_packages_and_the_way_through_files_that_are_not_open(workspace):
    documents, write, open_, folder = workspace
    write(
        src__SLASH__pkg__SLASH____init__="from .kernels import matmul\n",
        src__SLASH__pkg__SLASH__kernels="from ..pkg.util import tile\n",
        src__SLASH__pkg__SLASH__util="",
        unrelated="",
    )
    main = open_("tests/test_pkg.py", "import pkg\n")
    util = open_("src/pkg/util.py", "tile = 1\n")
    open_("unrelated.py", "import os\n")
    dependents = Dependents(documents)
    assert dependents.closure(main) == {
        str(folder / "src" / "pkg" / name) for name in ("__init__.py", "kernels.py", "util.py")
    }
    assert dependents.importers(util) == [main]
    assert dependents.imported(main) == [util]


def test_circles_end_and_edits_count(workspace):
    documents, write, open_, folder = workspace
    write(a="import b\n", b="import a\n")
    a = open_("a.py", "import b\n")
    dependents = Dependents(documents)
    assert dependents.closure(a) == {str(folder / "b.py")}
    documents.change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(2, documents.uri_of(a)),
            [types.TextDocumentContentChangeWholeDocument("x = 1\n")],
        )
    )
    assert dependents.closure(a) == set()


def test_a_file_that_comes_later_is_found(workspace):
    documents, write, open_, folder = workspace
    write(between="import helper\nimport written\n")
    main = open_("main.py", "import between\n")
    dependents = Dependents(documents)
    assert dependents.closure(main) == {str(folder / "between.py")}
    helper = open_("helper.py", "x = 1\n")
    assert dependents.importers(helper) == [main]
    write(written="")
    dependents.clear()
    assert str(folder / "written.py") in dependents.closure(main)
