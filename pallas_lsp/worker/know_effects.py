"""A ref that an operation uses where it does not exist: outside the scope that allocates it, or no ref at all.

jax notices when it closes a traced program and blames the program.  The operation and its ref stand in the frame of
``make_jaxpr_effects``.
"""

from __future__ import annotations

import types
from typing import Any

from . import compat, frames, know_operands


def unknown_ref(stack: list[tuple[types.FrameType, dict[str, Any]]]) -> dict[str, Any] | None:
    """The operation (primitive, place) and the ref that it uses, with its allocation."""
    for frame, names in stack:
        if frame.f_code.co_name != "make_jaxpr_effects":
            continue
        equation: Any = names.get("eqn")
        effect: Any = names.get("eff")
        if not hasattr(equation, "primitive") or effect is None:
            return None
        aval = getattr(effect.input, "aval", None)
        made = know_operands.allocation_of(aval)
        return {
            "primitive": equation.primitive.name,
            "type": compat.notation(effect.input),
            "is_ref": compat.is_ref(aval),
            "frames": frames.of_codes(compat.equation_frames(equation)),
            "allocation": know_operands.describe_allocation(made) if made is not None else None,
        }
    return None
