"""What becomes of a kernel's outputs in the program around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .. import compat
from .kernel import inner_variables

_FILLS = ("dynamic_update_slice", "select_n")
_CUTS = ("dynamic_slice", "gather")
_CALLS = ("pjit", "jit", "closed_call", "core_call", "custom_vmap_call", "custom_jvp_call", "custom_vjp_call")
_KERNELS = ("pallas_call", "mpmd_map", "core_map")
_DEPTH = 12


@dataclass(frozen=True)
class Use:
    """What becomes of one output: ``filled`` by something else, ``cut`` so that only a part is taken, or ``dropped``.

    ``reach``: how many elements along each dimension the static slices take; None where something takes all.
    """

    filled: bool = False
    cut: bool = False
    reach: tuple[int, ...] | None = None
    dropped: bool = False


def uses_of(program: Any, equation: Any) -> list[Use]:
    """What becomes of each output of a kernel."""
    path = _path(compat.open_jaxpr(program), equation)
    if not path:
        return [Use() for _ in equation.outvars]
    dropped = [type(out).__name__ == "DropVar" for out in equation.outvars]
    return [replace(_use(_uses(path, number)), dropped=each) for number, each in enumerate(dropped)]


def _use(found: list[tuple[Any, Any]]) -> Use:
    names = [equation.primitive.name for equation, _ in found]
    limits = [e.params["limit_indices"] for e, _ in found if e.primitive.name == "slice"]
    whole = [name for name in names if name not in ("slice", *_CALLS)]
    reach = tuple(max(each) for each in zip(*limits, strict=True)) if limits and not whole else None
    return Use(any(map(_fills, found)), any(name in _CUTS for name in names), reach)


def _path(jaxpr: Any, equation: Any) -> list[tuple[Any, Any]]:
    """(program, equation in it) from the outside to an equation."""
    for each in jaxpr.eqns:
        if each is equation:
            return [(jaxpr, each)]
        for inner in compat.sub_jaxprs(each):
            found = _path(inner, equation)
            if found:
                return [(jaxpr, each), *found]
    return []


def _uses(path: list[tuple[Any, Any]], number: int) -> list[tuple[Any, Any]]:
    """(equation, variable) for each use of a result, followed out of the calls around it."""
    jaxpr, equation = path[-1]
    variable = equation.outvars[number]
    found = _within(jaxpr, variable)
    if len(path) > 1 and path[-2][1].primitive.name in _CALLS:
        for position, out in enumerate(jaxpr.outvars):
            if out is variable:
                found += _uses(path[:-1], position)
    return found


def _within(jaxpr: Any, variable: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    found = []
    for equation in jaxpr.eqns:
        if not any(operand is variable for operand in equation.invars):
            continue
        found.append((equation, variable))
        if equation.primitive.name in _CALLS and depth < _DEPTH:
            for inner, own in inner_variables(equation, variable) or ():
                found += _within(inner, own, depth + 1)
    return found


def _fills(use: tuple[Any, Any]) -> bool:
    equation, variable = use
    name = equation.primitive.name
    if name in _FILLS or name.startswith("scatter"):
        return True
    if name in _KERNELS:
        aliases = dict(equation.params.get("input_output_aliases") or ())
        return any(operand is variable and number in aliases for number, operand in enumerate(equation.invars))
    return False
