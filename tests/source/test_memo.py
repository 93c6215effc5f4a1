"""What is found on the disk is asked for once in moments, and no longer taken to be true after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_lsp.model import Document, Snapshot
from pallas_lsp.source import workspace


def test_imports_are_resolved_once_for_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(workspace.time, "monotonic", lambda: now)
    file, other = str(tmp_path / "a.py"), tmp_path / "b.py"
    snapshot = Snapshot({}, (str(tmp_path),))
    assert workspace.imported_files(snapshot, file, "import b\n") == {}
    other.write_text("x = 1\n")
    assert workspace.imported_files(snapshot, file, "import b\n") == {}
    assert workspace.imported_files(Snapshot({}, (str(tmp_path),)), file, "import b\n") == {str(other): "x = 1\n"}
    now += 3
    assert workspace.imported_files(snapshot, file, "import b\n") == {str(other): "x = 1\n"}


def test_a_caller_may_change_what_it_got(tmp_path: Path) -> None:
    file, other = str(tmp_path / "a.py"), str(tmp_path / "b.py")
    snapshot = Snapshot({other: Document(other, "", 1)}, (str(tmp_path),))
    workspace.imported_files(snapshot, file, "import b\n").clear()
    assert workspace.imported_files(snapshot, file, "import b\n") == {other: ""}
