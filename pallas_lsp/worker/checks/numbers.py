"""Integers of a kernel's program worked out for every step of its grid at once, with numpy: no compilation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import compat

MOST_STEPS = 4096

Step = tuple[int, ...]


class UnknownError(Exception):
    """A value that the grid's indices alone do not tell."""


def steps_of(grid: Sequence[Any]) -> list[Step] | None:
    """The steps of a grid in order, the last axis fastest; None for one of unknown size or of very many steps."""
    if not all(isinstance(size, int) for size in grid) or math.prod(grid) > MOST_STEPS:
        return None
    return list(itertools.product(*(range(size) for size in grid)))


def evaluate(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """The results of a program of integer arithmetic; raises UnknownError for anything else."""
    known = dict(zip(jaxpr.constvars, consts, strict=False))
    known.update(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        results = apply(equation, [value(known, each) for each in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))
    return [value(known, each) for each in jaxpr.outvars]


def value(known: Mapping[Any, Any], variable: Any) -> Any:
    import numpy  # type: ignore[import-not-found,unused-ignore]

    if hasattr(variable, "val"):
        return numpy.asarray(variable.val)
    if variable not in known:
        raise UnknownError
    return known[variable]


def apply(equation: Any, operands: Sequence[Any]) -> list[Any]:
    name = equation.primitive.name
    inner = list(compat.sub_jaxprs(equation))
    if name in ("pjit", "jit", "closed_call", "core_call") and len(inner) == 1:
        consts = getattr(equation.params.get("jaxpr"), "consts", ())
        return evaluate(inner[0], consts, operands)
    scalars = not any(out.aval.shape for out in equation.outvars)
    if scalars and name in ("squeeze", "broadcast_in_dim", "reshape", "copy"):
        return [operands[0]]
    if not scalars and name not in _OF_ANY_SHAPE:
        raise UnknownError
    return elementwise(equation, operands)


_OF_ANY_SHAPE = ("convert_element_type", "select_n", "clamp", "integer_pow")


def elementwise(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """The result of arithmetic that goes element by element; raises UnknownError for anything else."""
    import numpy

    name = equation.primitive.name
    if name == "convert_element_type":
        return [numpy.asarray(operands[0]).astype(equation.params["new_dtype"])]
    if name == "select_n":
        if len(operands) != 3:
            raise UnknownError
        return [numpy.where(numpy.asarray(operands[0]).astype(bool), operands[2], operands[1])]
    if name == "clamp":
        low, x, high = operands
        return [numpy.minimum(numpy.maximum(x, low), high)]
    if name == "integer_pow":
        return [operands[0] ** equation.params["y"]]
    operation = _operations().get(name)
    if operation is None:
        raise UnknownError
    with numpy.errstate(all="ignore"):
        return [operation(*operands)]


def _operations() -> Mapping[str, Callable[..., Any]]:
    import numpy

    def quotient(a: Any, b: Any) -> Any:
        if numpy.any(numpy.asarray(b) == 0):
            raise UnknownError
        if numpy.asarray(a).dtype.kind == "f":
            return a / b
        return numpy.sign(a) * numpy.sign(b) * (abs(a) // abs(b))

    def remainder(a: Any, b: Any) -> Any:
        if numpy.any(numpy.asarray(b) == 0):
            raise UnknownError
        return numpy.fmod(a, b)

    return {
        "add": numpy.add,
        "add_any": numpy.add,
        "sub": numpy.subtract,
        "mul": numpy.multiply,
        "div": quotient,
        "rem": remainder,
        "max": numpy.maximum,
        "min": numpy.minimum,
        "neg": numpy.negative,
        "abs": numpy.abs,
        "sign": numpy.sign,
        "floor": numpy.floor,
        "ceil": numpy.ceil,
        "eq": numpy.equal,
        "ne": numpy.not_equal,
        "lt": numpy.less,
        "le": numpy.less_equal,
        "gt": numpy.greater,
        "ge": numpy.greater_equal,
        "and": numpy.bitwise_and,
        "or": numpy.bitwise_or,
        "xor": numpy.bitwise_xor,
        "not": numpy.bitwise_not,
        "shift_left": numpy.left_shift,
        "shift_right_arithmetic": numpy.right_shift,
    }


def index_of(body: Any, grid: Sequence[int], steps: Sequence[Step], variable: Any) -> list[int] | None:
    """A scalar of a kernel's body at each step of the grid; None where the step alone does not tell it."""
    import numpy

    producers = {out: equation for equation in body.eqns for out in equation.outvars}
    columns = [numpy.asarray(column, numpy.int32) for column in zip(*steps, strict=True)]
    known: dict[Any, Any] = {}

    def work_out(each: Any, depth: int = 0) -> Any:
        if hasattr(each, "val") or each in known:
            return value(known, each)
        equation = producers.get(each)
        if equation is None or depth > 200:
            raise UnknownError
        name = equation.primitive.name
        if name == "program_id":
            known[each] = columns[equation.params["axis"]]
        elif name == "num_programs":
            known[each] = numpy.asarray(grid[equation.params["axis"]], numpy.int32)
        else:
            results = apply(equation, [work_out(operand, depth + 1) for operand in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return known[each]

    try:
        found = numpy.broadcast_to(numpy.asarray(work_out(variable)), (len(steps),))
    except UnknownError:
        return None
    return [int(number) for number in found]


def visited(index_map: Any, steps: Sequence[Step]) -> list[Step] | None:
    """The block index at each step, for an index map that is arithmetic on the grid's indices alone."""
    import numpy

    jaxpr = compat.open_jaxpr(index_map)
    columns = [numpy.asarray(column, numpy.int32) for column in zip(*steps, strict=True)]
    if len(columns) != len(jaxpr.invars):
        return None
    try:
        results = evaluate(jaxpr, getattr(index_map, "consts", ()), columns)
    except UnknownError:
        return None
    rows = [numpy.broadcast_to(numpy.asarray(each), (len(steps),)) for each in results]
    return [tuple(int(number) for number in row) for row in zip(*rows, strict=True)]
