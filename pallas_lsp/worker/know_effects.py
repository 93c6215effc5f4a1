"""A ref that an operation uses where it does not exist: outside the scope that allocates it, or no ref at all.

jax notices when it closes a traced program and blames the program.  The operation and its ref stand in the frame of
``make_jaxpr_effects``.
"""

from __future__ import annotations

import types
from typing import Any

from . import compat, equations, frames, know_operands


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


_ANYWHERE = ("", "any", "gmem", "hbm", "none")
"""Where a ref may lie that the program around a kernel has."""


def foreign_ref(program: Any) -> dict[str, Any] | None:
    """The first use of a ref that a program was given although it belongs to a scope inside one of its kernels.

    jax hands a ref that Python's code kept to every program on the way to its use, like a constant of theirs.
    """
    jaxpr = compat.open_jaxpr(program)
    for ref in (*jaxpr.constvars, *jaxpr.invars):
        space = getattr(ref.aval, "memory_space", None)
        if compat.is_ref(ref.aval) and str(getattr(space, "value", space) or "").lower() not in _ANYWHERE:
            made = know_operands.allocation_of(ref.aval)
            used = _first_use(jaxpr, ref, ())
            return {
                "primitive": used[-1].primitive.name if used else "",
                "type": compat.notation(ref.aval),
                "is_ref": True,
                "frames": equations.innermost_frames(used),
                "allocation": know_operands.describe_allocation(made) if made is not None else None,
            }
    return None


def _first_use(jaxpr: Any, ref: Any, chain: equations.Chain) -> equations.Chain:
    for equation in jaxpr.eqns:
        here = (*chain, equation)
        positions = [number for number, operand in enumerate(equation.invars) if operand is ref]
        inner = list(compat.sub_jaxprs(equation))
        if positions and not inner:
            return here
        for program in inner if positions else ():
            name = equation.primitive.name
            given = program.constvars if name == "run_scoped" else program.invars
            place = positions[0] - (name == "cond")
            used = _first_use(program, given[place], here) if 0 <= place < len(given) else ()
            if used:
                return used
    return ()
