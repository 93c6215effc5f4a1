"""``pallas-lsp trust``."""

from __future__ import annotations

import pytest

from pallas_lsp.cli.main import main


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setattr("pallas_lsp.server.trust.default_path", lambda: tmp_path / "state" / "trust.json")


def test_a_folder_is_trusted_listed_and_forgotten(tmp_path, capsys, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").touch()
    assert main(["trust", str(project / "a.py")]) == 0
    assert main(["trust", "--never", str(tmp_path)]) == 0
    assert main(["trust", "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [f"never\t{tmp_path}", f"trusted\t{project}"]
    monkeypatch.chdir(project)
    assert main(["trust", "--revoke"]) == 0
    assert main(["trust", "--revoke"]) == 2
    assert "there is no answer" in capsys.readouterr().err
    assert main(["trust"]) == 0
    assert capsys.readouterr().out == f"Trusted: {project}\n"


@pytest.mark.parametrize("words", [["no-such-folder"], ["--list", "x"], ["--never", "--revoke"]])
def test_wrong_usage(words, capsys):
    assert main(["trust", *words]) == 2
    assert capsys.readouterr().err
