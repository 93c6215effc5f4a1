"""What the editor tests share: where things are, tools that are installed on first use, and a terminal's screen."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
EXTENSION = PROJECT / "editors" / "vscode"
sys.path.insert(0, str(PROJECT / "scripts"))

import editor_tools  # noqa: E402


def have(tool: Callable[[], Any]) -> Any:
    """A tool, or a skip with the reason; where CI is set only what is optional may be missing."""
    try:
        return tool()
    except editor_tools.MissingToolError as reason:
        if os.environ.get("CI") and tool.__name__ not in editor_tools.OPTIONAL:
            raise
        pytest.skip(str(reason))


class Screen:
    """A terminal in tmux: what stands on it, and keys for it."""

    def __init__(self, tmux: str, name: str) -> None:
        self._base = [tmux, "-L", name, "-f", "/dev/null"]

    def __call__(self, *arguments: str) -> str:
        return subprocess.run([*self._base, *arguments], capture_output=True, text=True, check=False).stdout

    def wait(self, text: str, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = self("capture-pane", "-p")
            if text in shown:
                return shown
            time.sleep(0.2)
        raise AssertionError(f"{text!r} never came on the screen:\n{self('capture-pane', '-p')}")
