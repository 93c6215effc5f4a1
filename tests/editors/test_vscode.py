"""The shipped .vsix in a real VS Code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from code_server import CodeServer

Suite = Callable[[str], Path]


def passed(output: str) -> int:
    match = re.search(r"(\d+) passed, 0 failed", output)
    assert match, output
    return int(match[1])


def bin_of(python: str) -> str:
    return str(Path(python).parent)


def test_fresh(tmp_path, workspace, vsix, suite: Suite, empty_extension, newest_jax_python) -> None:
    """Nothing but the .vsix and a Python with jax on the PATH."""
    tests = suite("fresh")
    path = [bin_of(newest_jax_python.python), "/usr/bin", "/bin"]
    with CodeServer(tmp_path / "code", workspace, [vsix], path=path) as code:
        output = code.run("in_extension_host.cjs", tests, empty_extension, timeout=200)
    print(output)
    assert passed(output) >= 11
