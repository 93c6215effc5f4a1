"""Which Python runs a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pallas_lsp.engine.errors import WorkerUnavailable
from pallas_lsp.engine.interpreter import find_interpreter

BIN = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"


def environment(folder: Path) -> str:
    python = folder / BIN
    python.parent.mkdir(parents=True)
    python.write_text("")
    python.chmod(0o755)
    return str(python)


def find(path: Path, roots=(), setting=None, **environ: str) -> str:
    return find_interpreter(str(path), [str(root) for root in roots], setting, environ)


@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_an_environment_near_the_file(tmp_path, name):
    python = environment(tmp_path / name)
    assert find(tmp_path / "a/b/f.py", [tmp_path]) == python
    inner = environment(tmp_path / "a" / name)
    assert find(tmp_path / "a/b/f.py", [tmp_path]) == inner
    assert find(tmp_path / "f.py", [tmp_path]) == python


def test_nothing_outside_the_workspace_is_taken(tmp_path):
    environment(tmp_path / ".venv")
    assert find(tmp_path / "root/f.py", [tmp_path / "root"]) == sys.executable


def test_without_a_workspace_the_project_is_the_limit(tmp_path):
    python = environment(tmp_path / ".venv")
    assert find(tmp_path / "a/f.py") == python
    (tmp_path / "a").mkdir()
    (tmp_path / "a/pyproject.toml").touch()
    assert find(tmp_path / "a/f.py") == sys.executable


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_the_active_environment_comes_before_a_near_one(tmp_path, variable):
    environment(tmp_path / ".venv")
    active = environment(tmp_path / "active")
    assert find(tmp_path / "f.py", [tmp_path], **{variable: str(tmp_path / "active")}) == active
    gone = {variable: str(tmp_path / "gone")}
    assert find(tmp_path / "f.py", [tmp_path], **gone) == str(tmp_path / ".venv" / BIN)


def test_the_setting_comes_first(tmp_path, monkeypatch):
    environment(tmp_path / ".venv")
    python = environment(tmp_path / "mine")
    environ = {"VIRTUAL_ENV": str(tmp_path / ".venv")}
    file = tmp_path / "f.py"
    assert find(file, [tmp_path], python, **environ) == python
    assert find(file, [tmp_path], str(tmp_path / "mine"), **environ) == python
    assert find(file, [tmp_path], "mine", **environ) == python
    assert find(file, [tmp_path], f"mine/{BIN}", **environ) == python
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PROJECT", str(tmp_path))
    assert find(file, [], f"~/mine/{BIN}") == python
    assert find(file, [], "$PROJECT/mine") == python
    monkeypatch.setenv("PATH", str(tmp_path / "mine/bin"))
    if sys.platform != "win32":
        assert find(file, [], "python") == python


def test_of_several_roots_the_files_own_counts(tmp_path):
    environment(tmp_path / "one/py")
    python = environment(tmp_path / "two/py")
    assert find(tmp_path / "two/f.py", [tmp_path / "one", tmp_path / "two"], "py") == python


def test_a_link_is_not_followed(tmp_path):
    real = environment(tmp_path / "real")
    link = tmp_path / ".venv" / BIN
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    assert find(tmp_path / "f.py", [tmp_path]) == str(link)
    assert find(tmp_path / "f.py", [tmp_path], str(link)) == str(link)


@pytest.mark.parametrize("setting", ["/no/such/python", "no-such-command", "./nothing", "~/nothing", "f.txt"])
def test_a_setting_that_names_no_python(tmp_path, setting):
    (tmp_path / "f.txt").write_text("")
    with pytest.raises(WorkerUnavailable) as caught:
        find(tmp_path / "f.py", [tmp_path], setting)
    assert caught.value.kind == "interpreter-missing"
    assert "'python'" in caught.value.remedy
    assert Path(setting).name in caught.value.message
