"""The configurations of docs/lsp.md for clients that need no code of ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from editor_kit import PROJECT, Screen, editor_tools, have

HERE = Path(__file__).resolve().parent


@pytest.fixture
def environment(tmp_path: Path, newest_jax_python, workspace: Path) -> dict[str, str]:
    """A home of its own, in which the folder is trusted."""
    home = tmp_path / "home"
    home.mkdir()
    names = ("CONFIG", "DATA", "STATE", "CACHE")
    variables = {
        **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in names},
        "HOME": str(home),
        "PALLAS_CMD": json.dumps([sys.executable, "-m", "pallas_lsp", "serve"]),
        "PALLAS_PYTHON": newest_jax_python.python,
        "PYTHONPATH": str(PROJECT),
        "TERM": "xterm-256color",
    }
    trust = [sys.executable, "-m", "pallas_lsp", "trust", str(workspace)]
    subprocess.run(trust, env=variables, check=True, capture_output=True)
    return variables


def test_emacs_with_eglot(workspace: Path, environment: dict[str, str]) -> None:
    emacs = have(editor_tools.emacs)
    command = [emacs, "--batch", "-l", str(HERE / "emacs_eglot.el"), str(workspace / "faulty.py")]
    done = subprocess.run(
        command, env=environment, cwd=workspace, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "diagnostic on: plgpu.ACC.init(c)" in done.stderr
    assert "fixed with eglot" in done.stderr


def test_helix(tmp_path: Path, workspace: Path, environment: dict[str, str]) -> None:
    """The TOML of docs/lsp.md with the command of this checkout, on a screen."""
    helix, tmux = have(editor_tools.helix), have(editor_tools.tmux)
    page = (PROJECT / "docs" / "lsp.md").read_text()
    found = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert found
    command = json.loads(environment["PALLAS_CMD"])
    text = found[1].replace('command = "pallas-lsp"', f'command = "{command[0]}"')
    text = text.replace('args = ["serve"]', f"args = {json.dumps(command[1:])}").replace('"pylsp", ', "")
    config = Path(environment["XDG_CONFIG_HOME"], "helix", "languages.toml")
    config.parent.mkdir(parents=True)
    config.write_text(text)
    screen = Screen(tmux, f"pallas-helix-{os.getpid()}")
    options = ["new-session", "-d", "-x", "120", "-y", "40", "-c", str(workspace)]
    virtual = str(Path(environment["PALLAS_PYTHON"]).parent.parent)
    for name, value in {**environment, "VIRTUAL_ENV": virtual}.items():
        if name.startswith(("XDG_", "PYTHONPATH", "TERM", "HOME", "VIRTUAL_ENV")):
            options += ["-e", f"{name}={value}"]
    try:
        screen(*options, helix, f"{workspace / 'faulty.py'}:24:48")
        screen.wait("has a start value", 120)
        screen("send-keys", "Space", "a")
        screen.wait("Use pl.run_state")
        screen("send-keys", "Enter")
        screen.wait("pl.run_state(multiply)(plgpu.ACC.init(c))")
    finally:
        screen("kill-server")
