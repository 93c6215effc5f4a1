"""What the editor tests share: where the project is, and tools that are installed on first use."""

from __future__ import annotations

import os
import sys
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
