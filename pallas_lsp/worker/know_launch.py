"""What a launch was given, by option, and the block that a lowering rule was looking at."""

from __future__ import annotations

import types
from typing import Any

from . import know_specs

Stack = list[tuple[types.FrameType, dict[str, Any]]]


def facts(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a launch as text."""
    return {"options": {name: know_specs.given(value) for name, value in options.items()}}


def block(stack: Stack) -> dict[str, Any] | None:
    """The BlockMapping in the innermost frame of jax that holds one: origin, block and array shape."""
    for _, names in stack:
        for value in names.values():
            if type(value).__name__ == "BlockMapping":
                return {
                    "origin": str(value.origin),
                    "block_shape": [know_specs.dimension(d) for d in value.block_shape],
                    "array": know_specs.type_of(value.array_aval),
                }
    return None
