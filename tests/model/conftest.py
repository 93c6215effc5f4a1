"""The tests here share the fuzz tests' changes of a text and the server tests' client."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "server")]

collect_ignore = ["workspaces"]  # kernels with tests of their own, which are drivers here
