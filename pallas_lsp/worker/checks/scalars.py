"""Arithmetic of single integers, where they are known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

_SAME = ("convert_element_type", "squeeze", "broadcast_in_dim", "reshape", "copy", "stop_gradient", "copy_p")


def _quotient(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int | None:
    quotient = _quotient(a, b)
    return None if quotient is None else a - b * quotient


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _quotient,
    "rem": _remainder,
    "max": max,
    "min": min,
    "neg": operator.neg,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "shift_left": operator.lshift,
    "shift_right_arithmetic": operator.rshift,
    "clamp": lambda low, x, high: min(max(x, low), high),
}
_LARGEST = 2**31


def scalar(equation: Any, values: Sequence[Any]) -> int | None:
    """The result of one operation on scalars; None where it is not known."""
    out = equation.outvars[0].aval
    if getattr(out, "shape", None) != () or getattr(getattr(out, "dtype", None), "kind", "") not in ("i", "u", "b"):
        return None
    name = equation.primitive.name
    if name == "select_n":
        which = values[0]
        return values[1 + int(which)] if which is not None else None
    if name in _SAME:
        kind = getattr(getattr(equation.invars[0].aval, "dtype", None), "kind", "")
        number = values[0] if kind in ("i", "u", "b") else None
        return int(bool(number)) if number is not None and out.dtype.kind == "b" else number
    is_bool = out.dtype.kind == "b"
    if name in ("and", "or") and is_bool:
        decisive = int(name == "or")
        if decisive in values:
            return decisive
        return None if None in values else 1 - decisive
    if name == "not" and is_bool and values[0] is not None:
        return 1 - int(values[0])
    operation = _OPERATIONS.get(name)
    if operation is None or None in values or any(not isinstance(each, int) for each in values):
        return None
    result = operation(*values)
    return int(result) if result is not None and abs(result) < _LARGEST else None
