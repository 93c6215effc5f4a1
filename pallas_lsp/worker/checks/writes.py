"""What a program does to one ref, in order: stores that give it a value, and stores that only change the one it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import compat
from . import numbers
from .kernel import is_variable, producers

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "program_id", "axis_index", "sign", "iota", "is_finite")
_INLINE = ("pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "jaxpr_call", "run_scoped")


class NotUnderstoodError(Exception):
    """The ref goes to something whose effect on it is not known."""


@dataclass
class Store:
    """``own``: the stored value comes from the ref's earlier one, whatever the step."""

    chain: tuple[Any, ...]
    own: bool


@dataclass
class Branch:
    equation: Any
    branches: list[list[Any]]
    body: Any
    """The program that the branch stands in."""


@dataclass
class Loop:
    events: list[Any]
    runs: bool
    """Whether it surely runs at least once."""


def events(jaxpr: Any, chain: tuple[Any, ...], ref: Any) -> list[Any] | None:
    """The stores into a ref in order, in branches and loops; None where something is not understood."""
    try:
        return _Walk(ref).run(jaxpr, chain, ref, set())[0]
    except NotUnderstoodError:
        return None


def stores(found: Sequence[Any]) -> list[Store]:
    """All stores among events."""
    result: list[Store] = []
    for event in found:
        if isinstance(event, Store):
            result.append(event)
        elif isinstance(event, Branch):
            for branch in event.branches:
                result += stores(branch)
        else:
            result += stores(event.events)
    return result


def taken(
    body: Any, grid: Sequence[Any], steps: Sequence[numbers.Step], found: Sequence[Any]
) -> dict[int, list[int] | None]:
    """For each branch of a kernel's body itself the one that is taken at each step; None where that is not known."""
    return {
        id(event): numbers.index_of(body, grid, steps, event.equation.invars[0])
        for event in found
        if isinstance(event, Branch) and event.body is body
    }


class _Walk:
    def __init__(self, ref: Any) -> None:
        self.ref = ref

    def run(self, jaxpr: Any, chain: tuple[Any, ...], ref: Any, tainted: set[Any]) -> tuple[list[Any], list[bool]]:
        """The events, and for each result whether it surely comes from the ref's value."""
        found: list[Any] = []
        for equation in jaxpr.eqns:
            here = (*chain, equation)
            name = equation.primitive.name
            uses = ref is not None and any(operand is ref for operand in equation.invars)
            depends = [is_variable(v) and v in tainted for v in equation.invars]
            if uses and name in ("get", "masked_load"):
                tainted.update(equation.outvars)
            elif uses and name in ("swap", "masked_swap", "addupdate", "atomic_rmw"):
                if equation.invars[0] is not ref:
                    raise NotUnderstoodError
                adds = name == "addupdate" or (name == "atomic_rmw" and not str(_kind(equation)).endswith("XCHG"))
                found.append(Store(here, adds or any(depends)))
                tainted.update(equation.outvars)
            elif uses or any(depends):
                inner = list(compat.sub_jaxprs(equation))
                if inner:
                    events_here, flags = self.inside(equation, here, jaxpr, ref if uses else None, depends)
                    found += events_here
                    tainted.update(out for out, flag in zip(equation.outvars, flags, strict=False) if flag)
                elif uses:
                    raise NotUnderstoodError
                elif _passes_on(jaxpr, equation, depends):
                    tainted.update(equation.outvars)
        return found, [is_variable(out) and out in tainted for out in jaxpr.outvars]

    def inside(
        self, equation: Any, chain: tuple[Any, ...], body: Any, ref: Any, depends: Sequence[bool]
    ) -> tuple[list[Any], list[bool]]:
        name = equation.primitive.name
        runs = []
        for program, inner_ref, tainted in self._programs(equation, ref, depends):
            runs.append(self.run(program, chain, inner_ref, tainted))
        if name == "cond":
            branches = [found for found, _ in runs]
            flags = [all(each) for each in zip(*(flags for _, flags in runs), strict=True)]
            return ([Branch(equation, branches, body)] if any(branches) else []), flags
        found, flags = runs[0]
        if name in ("scan", "while"):
            length = equation.params.get("length")
            return ([Loop(found, isinstance(length, int) and length > 0)] if found else []), flags
        return found, flags

    def _programs(self, equation: Any, ref: Any, depends: Sequence[bool]) -> list[tuple[Any, Any, set[Any]]]:
        name = equation.primitive.name
        if name == "while":
            program = compat.open_jaxpr(equation.params["body_jaxpr"])
            start = equation.params["cond_nconsts"]
            operands, flags = equation.invars[start:], depends[start:]
            if ref is not None and not any(operand is ref for operand in operands):
                raise NotUnderstoodError
            return [(program, *_handed(program.invars, operands, flags, ref))]
        found = []
        for program in compat.sub_jaxprs(equation):
            if name == "cond":
                inner, operands, flags = program.invars, equation.invars[1:], depends[1:]
            elif name == "run_scoped":
                inner, operands, flags = program.constvars, equation.invars, depends
            elif name in ("scan", *_INLINE):
                inner, operands, flags = program.invars, equation.invars, depends
            else:
                raise NotUnderstoodError
            if len(inner) != len(operands):
                raise NotUnderstoodError
            found.append((program, *_handed(inner, operands, flags, ref)))
            if name != "cond":
                break
        return found


def _kind(equation: Any) -> Any:
    return equation.params.get("atomic_type")


def _handed(inner: Sequence[Any], operands: Sequence[Any], flags: Sequence[bool], ref: Any) -> tuple[Any, set[Any]]:
    own = None
    tainted = set()
    for variable, operand, flag in zip(inner, operands, flags, strict=True):
        if ref is not None and operand is ref:
            if own is not None:
                raise NotUnderstoodError
            own = variable
        elif flag:
            tainted.add(variable)
    return own, tainted


def _passes_on(jaxpr: Any, equation: Any, depends: Sequence[bool]) -> bool:
    """Whether a result surely holds something of the tainted operands: a mask may have taken it out."""
    name = equation.primitive.name
    if name == "select_n":
        return all(depends[1:])
    if name in ("mul", "and", "clamp", "min", "max", "div", "rem", "shift_left", "shift_right_logical"):
        others = [v for v, flag in zip(equation.invars, depends, strict=True) if not flag]
        if name in ("mul", "and", "shift_left", "shift_right_logical", "rem"):
            return not any(from_comparison(jaxpr, other) for other in others)
    return True


def from_comparison(jaxpr: Any, variable: Any) -> bool:
    """Whether a value is worked out from a comparison or from where in the grid or block it is."""
    return any(_compares(equation) for equation in producers(jaxpr, variable))


def _compares(equation: Any) -> bool:
    if equation.primitive.name in COMPARISONS or equation.primitive.name in ("select_n", "cond"):
        return True
    return any(_compares(each) for jaxpr in compat.sub_jaxprs(equation) for each in jaxpr.eqns)
