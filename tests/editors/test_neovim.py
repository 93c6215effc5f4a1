"""The Neovim plugin in a real Neovim: headless, and on a screen in tmux."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from editor_kit import Screen, editor_tools, have

HERE = Path(__file__).resolve().parent
PLUGIN = HERE.parents[1] / "editors" / "nvim"


@pytest.fixture
def environment(tmp_path: Path, newest_jax_python) -> dict[str, str]:
    """A home of its own, so that nobody's answers about trust and nobody's configuration count."""
    tags = tmp_path / "help" / "doc"
    shutil.copytree(PLUGIN / "doc", tags)
    home = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {
        **os.environ,
        **home,
        "PALLAS_NVIM": str(PLUGIN),
        "PALLAS_CMD": json.dumps([sys.executable, "-m", "pallas_lsp", "serve"]),
        "PALLAS_PYTHON": newest_jax_python.python,
        "PALLAS_TAGS": str(tags),
        "PYTHONPATH": str(HERE.parents[1]),
        "TERM": "xterm-256color",
    }


@pytest.mark.parametrize("old", [False, True], ids=["enable", "without-enable"])
def test_headless(workspace: Path, environment: dict[str, str], old: bool) -> None:
    """With ``vim.lsp.enable``, and by the way that Neovim 0.10 takes, which lacks it."""
    if old:
        environment["PALLAS_OLD"] = "1"
    nvim = have(editor_tools.neovim)
    command = [nvim, "--headless", "--clean", "-u", HERE / "nvim_headless.lua", workspace / "faulty.py"]
    done = subprocess.run(
        list(map(str, command)),
        env=environment,
        cwd=workspace,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    output = done.stdout + done.stderr
    print(output)
    assert done.returncode == 0, output
    assert "ok   help" in output


@pytest.fixture
def screen(environment: dict[str, str]) -> Iterator[Callable[..., Screen]]:
    shown = Screen(have(editor_tools.tmux), f"pallas-{os.getpid()}")

    def start(command: list[str], cwd: Path) -> Screen:
        options = ["new-session", "-d", "-x", "110", "-y", "40", "-c", str(cwd)]
        for name, value in environment.items():
            if name.startswith(("PALLAS_", "XDG_", "PYTHONPATH", "TERM")):
                options += ["-e", f"{name}={value}"]
        shown(*options, *command)
        return shown

    yield start
    shown("kill-server")


def test_on_screen(workspace: Path, screen: Callable[..., Screen]) -> None:
    """The server asks for trust, the fault appears beside its line, `gra` offers fixes, one is applied."""
    nvim = have(editor_tools.neovim)
    file = workspace / "faulty.py"
    shown = screen([str(nvim), "--clean", "-u", str(HERE / "nvim_screen.lua"), str(file)], workspace)
    question = shown.wait("Trust this folder?", 60)
    assert "Never for this folder" in question
    shown("send-keys", "1", "Enter")
    shown.wait("has a start value", 90)
    shown("send-keys", "24G", "f,", "w", "gra")
    shown.wait("Use pl.run_state")
    shown("send-keys", "1", "Enter")
    shown.wait("pl.run_state(multiply)(plgpu.ACC.init(c))")
    shown("send-keys", ":wq", "Enter")
    end = time.monotonic() + 20
    while "pl.run_state(multiply)" not in file.read_text() and time.monotonic() < end:
        time.sleep(0.2)
    assert "pl.run_state(multiply)(plgpu.ACC.init(c))" in file.read_text()
