"""Tests and scripts elsewhere that reach a file's launches: found through imports, ranked, remembered."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pallas_lsp.discovery import candidates
from pallas_lsp.discovery.index import Index
from pallas_lsp.discovery.memory import Memory
from pallas_lsp.model import Document, Driver, Snapshot

KERNELS = """
import jax
from jax.experimental import pallas as pl
def _body(x_ref, o_ref):
    o_ref[...] = x_ref[...]
def scale(x):
    return pl.pallas_call(_body, out_shape=x)(x)
def helper(x):
    return x
"""
FILES = {
    "src/lib/__init__.py": "from .ops import scale as scale\n",
    "src/lib/ops.py": KERNELS,
    "src/lib/model.py": "from lib import ops\ndef layer(x):\n    return ops.scale(x)\n",
    "tests/test_ops.py": "from lib.ops import scale, helper\n"
    "def test_helper():\n    helper(1)\ndef test_scale():\n    scale(1)\n",
    "tests/test_package.py": "import lib\ndef test_public():\n    lib.scale(1)\n",
    "tests/test_model.py": "from lib.model import layer\ndef test_layer():\n    layer(1)\n",
    "tests/test_other.py": "def test_nothing():\n    pass\n",
    "benchmarks/bench.py": "from lib.ops import scale\nif __name__ == '__main__':\n    scale(1)\n",
    ".venv/pyvenv.cfg": "",
    ".venv/lib/test_hidden.py": "from lib.ops import scale\ndef test_hidden():\n    scale(1)\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "work"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def find(workspace: Path, snapshot: Snapshot) -> list[tuple[str, str]]:
    index = Index(str(workspace), workspace.parent / "cache")
    index.refresh(snapshot)
    path = str(workspace / "src/lib/ops.py")
    return [
        (Path(driver.path).name, driver.name or driver.kind)
        for batch in candidates.find(index, snapshot, path)
        for driver in batch
    ]


def test_order(workspace: Path) -> None:
    found = find(workspace, Snapshot(roots=(str(workspace),)))
    assert found == [
        ("test_ops.py", "test_scale"),
        ("test_ops.py", "test_helper"),
        ("test_package.py", "test_public"),
        ("test_model.py", "test_layer"),
        ("bench.py", "script"),
    ]


def test_tests_that_are_inherited(workspace: Path) -> None:
    """A class whose base stands in another file of the workspace may have tests that are not seen here."""
    (workspace / "tests/base.py").write_text("import unittest\nclass Base(unittest.TestCase):\n    pass\n")
    text = "from lib.ops import scale\nfrom base import Base\nclass ScaleTest(Base):\n    entry = staticmethod(scale)\n"
    (workspace / "tests/test_inherited.py").write_text(text)
    assert ("test_inherited.py", "ScaleTest.") in find(workspace, Snapshot(roots=(str(workspace),)))


def test_helpers_of_tests_are_followed(workspace: Path) -> None:
    """The test that reaches an entry through a method of its class comes before one that does not."""
    text = (
        "import unittest\nfrom lib.ops import scale, helper\nclass OpsTest(unittest.TestCase):\n"
        "    def run_it(self):\n        scale(1)\n"
        "    def test_a(self):\n        helper(1)\n    def test_b(self):\n        self.run_it()\n"
    )
    (workspace / "tests/test_methods.py").write_text(text)
    found = [name for file, name in find(workspace, Snapshot(roots=(str(workspace),))) if file == "test_methods.py"]
    assert found == ["OpsTest.test_b", "OpsTest.test_a"]


def test_open_documents_count(workspace: Path) -> None:
    path = str(workspace / "tests/test_other.py")
    text = "from lib.ops import scale\ndef test_new():\n    scale(1)\n"
    snapshot = Snapshot({path: Document(path, text, 1)}, (str(workspace),))
    assert ("test_other.py", "test_new") in find(workspace, snapshot)


def test_the_index_is_kept_and_brought_up_to_date(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = Snapshot(roots=(str(workspace),))
    first = Index(str(workspace), workspace.parent / "cache")
    first.refresh(snapshot)
    read: list[str] = []

    def reading(_: Snapshot, path: str) -> str:
        read.append(Path(path).name)
        return Path(path).read_text(encoding="utf-8")

    monkeypatch.setattr("pallas_lsp.discovery.index.read_text", reading)
    again = Index(str(workspace), workspace.parent / "cache")
    assert again.entries == first.entries
    changed = workspace / "tests/test_other.py"
    changed.write_text("import lib\n", encoding="utf-8")
    os.utime(changed, ns=(time.time_ns(), time.time_ns() + 10**9))
    (workspace / "tests/test_model.py").unlink()
    again.refresh(snapshot)
    assert read == ["test_other.py"]
    assert not any(path.endswith("test_model.py") for path in again.entries)


def test_a_damaged_index_is_made_anew(workspace: Path) -> None:
    snapshot = Snapshot(roots=(str(workspace),))
    Index(str(workspace), workspace.parent / "cache").refresh(snapshot)
    (store,) = (workspace.parent / "cache" / "index").iterdir()
    store.write_text('{"version": 1, "files": [3', encoding="utf-8")
    index = Index(str(workspace), workspace.parent / "cache")
    assert index.entries == {}
    index.refresh(snapshot)
    assert index.entries


def test_memory(workspace: Path) -> None:
    """An edit of the kernel keeps what is known; an edit of the driver's file does not."""
    path, test = str(workspace / "src/lib/ops.py"), str(workspace / "tests/test_ops.py")
    driver = Driver(f"pytest:{test}::test_scale", "pytest", test, "test_scale")
    snapshot = Snapshot(roots=(str(workspace),))
    Memory(workspace.parent / "cache").remember(snapshot, path, (driver,))
    memory = Memory(workspace.parent / "cache")
    assert memory.drivers(snapshot, path) == (driver,)
    edited = {path: Document(path, KERNELS + "#\n", 2)}
    assert memory.drivers(Snapshot(edited, snapshot.roots), path) == (driver,)
    edited = {test: Document(test, "#\n", 2)}
    assert memory.drivers(Snapshot(edited, snapshot.roots), path) is None
    memory.forget(path)
    assert memory.drivers(snapshot, path) is None
