"""The shipped .vsix in a real VS Code."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from code_server import CodeServer

Suite = Callable[[str], Path]

IMAGES = Path(__file__).resolve().parents[2] / "editors" / "vscode" / "images"
UPDATE = "PALLAS_LSP_UPDATE_IMAGES"
SYSTEM = ("/usr/bin", "/bin")


def passed(output: str) -> int:
    match = re.search(r"(\d+) passed, 0 failed", output)
    assert match, output
    return int(match[1])


def path_with(python: str) -> list[str]:
    return [str(Path(python).parent), *SYSTEM]


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    folder = tmp_path / "shots"
    folder.mkdir()
    return folder


def keep(shots: Path, *names: str) -> None:
    """Where PALLAS_LSP_UPDATE_IMAGES is set the screenshots become those of the README."""
    for name in names:
        assert (shots / f"{name}.png").stat().st_size > 10_000
        if os.environ.get(UPDATE):
            shutil.copyfile(shots / f"{name}.png", IMAGES / f"{name}.png")


def test_fresh(tmp_path, workspace, vsix, suite: Suite, empty_extension, newest_jax_python) -> None:
    """Nothing but the .vsix and a Python with jax on the PATH."""
    path = path_with(newest_jax_python.python)
    with CodeServer(tmp_path / "code", workspace, [vsix], path=path, hosts_tests=True) as code:
        output = code.run("in_extension_host.cjs", suite("fresh"), empty_extension, timeout=420)
    print(output)
    assert passed(output) >= 15


def test_fault_fixed_by_hand(tmp_path, workspace, vsix, shots, newest_jax_python) -> None:
    """The Problems panel, the lightbulb's menu and the applied fix, on the screen."""
    with CodeServer(tmp_path / "code", workspace, [vsix], path=path_with(newest_jax_python.python)) as code:
        output = code.run("drive_window.cjs", "fix", shots)
    assert "Use pl.run_state" in output
    assert "Silence" in output
    assert "pl.run_state(multiply)(plgpu.ACC.init(c))" in (workspace / "faulty.py").read_text()
    keep(shots, "problems", "quick-fix", "fixed")


def test_view_beside_the_kernel(tmp_path, workspace, vsix, shots, newest_jax_python) -> None:
    """The command in the palette opens the kernel's jaxpr as a read-only document."""
    with CodeServer(tmp_path / "code", workspace, [vsix], path=path_with(newest_jax_python.python)) as code:
        code.run("drive_window.cjs", "view", shots)
    keep(shots, "jaxpr")


def test_untrusted_workspace(tmp_path, workspace, vsix, shots, newest_jax_python) -> None:
    """Nothing of the folder is run, its own interpreter included, until the user trusts it."""
    ran = tmp_path / "ran"
    (workspace / "faulty.py").open("a").write(f"\nopen({str(ran)!r}, 'a').close()\n")
    evil = workspace / ".venv" / "bin" / "python"
    evil.parent.mkdir(parents=True)
    evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    settings = workspace / ".vscode" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"pallas-lsp.interpreter": [str(evil)], "pallas-lsp.path": [str(evil)]}))
    machine = {"pallas-lsp.interpreter": [newest_jax_python.python]}
    with CodeServer(tmp_path / "code", workspace, [vsix], trust=None, machine=machine) as code:
        code.run("drive_window.cjs", "untrusted", shots, RAN=str(ran))
    keep(shots, "untrusted")


def test_no_python(tmp_path, workspace, vsix, shots) -> None:
    """No Python anywhere: a message says what to do."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "bash", "env", "ps", "cat", "uname", "sed", "grep", "ls"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    with CodeServer(tmp_path / "code", workspace, [vsix], path=[str(programs)]) as code:
        output = code.run("drive_window.cjs", "nopython", shots)
    assert "Select an interpreter in the Python extension" in output


def test_python_extension(tmp_path, workspace, vsix, suite: Suite, empty_extension, newest_jax_python) -> None:
    """The interpreter that is selected in the Python extension is taken, through that extension's public interface."""
    other = tmp_path / "ms-python"
    shutil.copytree(Path(__file__).parent / "python_extension", other)
    (other / "selected.json").write_text(json.dumps({"python": newest_jax_python.python}))
    with CodeServer(tmp_path / "code", workspace, [vsix], path=SYSTEM, extensions=[other], hosts_tests=True) as code:
        output = code.run("in_extension_host.cjs", suite("python"), empty_extension)
    print(output)
    assert passed(output) >= 2
