"""Which files are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_lsp.cli.files import mentions_pallas, project_folder, select


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


PALLAS = "from jax.experimental import pallas as pl\n"


def test_folders_are_searched_for_files_that_use_pallas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(
        tmp_path,
        {
            "b.py": PALLAS,
            "a/k.py": PALLAS,
            "a/other.py": "import jax\n",
            "a/notes.txt": PALLAS,
            ".git/k.py": PALLAS,
            ".venv/k.py": PALLAS,
            "node_modules/x/k.py": PALLAS,
            "__pycache__/k.py": PALLAS,
            "my-env/pyvenv.cfg": "",
            "my-env/lib/k.py": PALLAS,
        },
    )
    monkeypatch.chdir(tmp_path)
    selection = select(["."])
    assert selection.files == [str(tmp_path / "b.py"), str(tmp_path / "a/k.py")]
    assert selection.without_pallas == [str(tmp_path / "a/other.py")]
    assert selection.missing == []


def test_named_files_are_always_checked_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, {"k.py": PALLAS, "plain.py": "x = 1\n"})
    monkeypatch.chdir(tmp_path)
    selection = select([".", "plain.py", "./k.py", "k.py"])
    assert sorted(selection.files) == [str(tmp_path / "k.py"), str(tmp_path / "plain.py")]
    assert selection.without_pallas == []


def test_missing_paths_and_empty_folders_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, {"empty/readme.md": ""})
    monkeypatch.chdir(tmp_path)
    selection = select(["none.py", "empty"])
    assert selection.missing == ["none.py"]
    assert selection.empty_folders == ["empty"]
    assert selection.files == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import jax.experimental.pallas as pl\n", True),
        ("from jax.experimental import (\n    pjit,\n    pallas as pl,\n)\n", True),
        ("from jax.experimental.pallas import mosaic_gpu as plgpu\n", True),
        ("def f():\n    from jax.experimental import pallas\n", True),
        ("from kernels.pallas_matmul import matmul\n", True),
        ("import importlib\npl = importlib.import_module('jax.experimental.pallas')\n", True),
        ("# pallas is not used here\nimport jax\n", False),
        ("x = 'pallas'\n", False),
        ("import jax\n", False),
        ("from jax.experimental import pallas as pl\ndef f(:\n", True),
        ("def f(:\n# pallas\n", False),
    ],
)
def test_a_file_uses_pallas_if_it_imports_it(tmp_path: Path, text: str, expected: bool) -> None:
    tree(tmp_path, {"k.py": text})
    assert mentions_pallas(str(tmp_path / "k.py")) is expected


def test_a_file_that_cannot_be_decoded_is_kept(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_bytes(b"import pallas\nx = '\xff'\n")
    assert mentions_pallas(str(tmp_path / "k.py"))


def test_the_project_of_a_file(tmp_path: Path) -> None:
    tree(tmp_path, {"repo/.git/HEAD": "", "repo/pkg/pyproject.toml": "", "repo/pkg/k.py": "", "loose/k.py": ""})
    assert project_folder(str(tmp_path / "repo/pkg/k.py"), "/") == str(tmp_path / "repo")
    assert project_folder(str(tmp_path / "loose/k.py"), str(tmp_path)) == str(tmp_path)
    assert project_folder(str(tmp_path / "loose/k.py"), str(tmp_path / "repo")) == str(tmp_path / "loose")
