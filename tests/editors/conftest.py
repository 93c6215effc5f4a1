"""Real editors with the shipped packages.  What an editor needs is installed on first use (scripts/editor_tools.py)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from editor_kit import EXTENSION, PROJECT, editor_tools, have


@pytest.fixture(scope="session")
def node() -> Path:
    found = have(editor_tools.vscode)
    have(editor_tools.extension_modules)
    return found.node


@pytest.fixture(scope="session")
def npm_tool(node: Path) -> Callable[..., str]:
    """Run something of the extension's own tools in its folder; its output."""

    def run(*command: str | Path) -> str:
        environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}", "PYTHON": sys.executable}
        done = subprocess.run(
            [str(node), *map(str, command)], cwd=EXTENSION, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def vsix(npm_tool: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is shipped, built by its own command; PALLAS_LSP_TEST_VSIX names one that was built already."""
    if built := os.environ.get("PALLAS_LSP_TEST_VSIX"):
        return Path(built)
    file = tmp_path_factory.mktemp("vsix") / "pallas-lsp.vsix"
    npm_tool("scripts/package.mjs", file)
    return file


@pytest.fixture(scope="session")
def bundled_server(vsix: Path) -> Path:
    """The server as the .vsix holds it: the folder with launch.py and libs."""
    return EXTENSION / "bundled"


@pytest.fixture(scope="session")
def suite(npm_tool: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A test module for the extension host, built from editors/vscode/test."""

    def build(name: str) -> Path:
        out = tmp_path_factory.mktemp("suite") / f"{name}.js"
        npm_tool("scripts/build.mjs", f"test/{name}.ts", out)
        return out

    return build


def as_notebook(program: str) -> str:
    """A kernel's file as a notebook: imports, the kernel, the calls, with what only IPython understands."""
    head, rest = program.split("def addmm_kernel")
    kernel, main = rest.split("\n\nif __name__")
    calls = textwrap.dedent(main.partition("\n")[2])
    cells = [
        "%matplotlib inline\n" + head.strip(),
        "def addmm_kernel" + kernel.strip(),
        "%%bash\necho hi",
        calls.strip(),
    ]
    made = [{"cell_type": "markdown", "metadata": {}, "source": ["# A kernel"]}]
    for text in cells:
        lines = text.splitlines(keepends=True)
        made.append({"cell_type": "code", "metadata": {}, "source": lines, "outputs": [], "execution_count": None})
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a faulty kernel and a correct one."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    shutil.copyfile(PROJECT / "examples" / "faulty_start_value_in_run_scoped.py", folder / "faulty.py")
    shutil.copyfile(PROJECT / "examples" / "triton_softmax.py", folder / "correct.py")
    (folder / "notebook.ipynb").write_text(as_notebook((folder / "faulty.py").read_text()))
    return folder


@pytest.fixture(scope="session")
def empty_extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VS Code runs test modules for an extension under development only; this one does nothing."""
    folder = tmp_path_factory.mktemp("empty")
    manifest = '{"name": "empty", "publisher": "tests", "version": "0.0.1", "engines": {"vscode": "^1.91.0"}}'
    (folder / "package.json").write_text(manifest)
    return folder
