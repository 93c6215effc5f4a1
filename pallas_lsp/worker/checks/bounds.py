"""Accesses past the end of a ref, where the grid and loops of known length tell each index."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import compat
from . import numbers
from .kernel import Found, Kernel, is_variable, mentions, places

_LARGEST = 1 << 18
_OPERANDS = {"get": 1, "swap": 2, "addupdate": 2}
"""Where the operands of an access begin that its indices are made of."""
_SHAPING = ("broadcast_in_dim", "squeeze", "reshape", "copy")


def check(kernel: Kernel) -> Iterator[Found]:
    """The first access that is outside its ref at some step; the copy engine of Mosaic GPU leaves out what is."""
    mapping = kernel.grid_mapping
    if mapping is None or kernel.backend == "mosaic_gpu" or mapping.num_dynamic_grid_bounds:
        return
    steps = numbers.steps_of(mapping.grid) or [()]
    yield from _Walk(kernel, steps).run(kernel.body, kernel.chain, {}, list(range(len(steps))))


class _Walk:
    """``known``: what a variable is in each of some samples; ``samples``: the step of the grid of each."""

    def __init__(self, kernel: Kernel, steps: Sequence[numbers.Step]) -> None:
        self.grid = kernel.grid_mapping.grid
        self.steps = steps

    def run(self, jaxpr: Any, chain: tuple[Any, ...], known: dict[Any, Any], samples: list[int]) -> Iterator[Found]:
        import numpy  # type: ignore[import-not-found,unused-ignore]

        for equation in jaxpr.eqns if samples else ():
            here = (*chain, equation)
            name = equation.primitive.name
            if name == "program_id":
                axis = equation.params["axis"]
                known[equation.outvars[0]] = numpy.asarray([self.steps[at][axis] for at in samples], numpy.int64)
            elif name == "num_programs":
                known[equation.outvars[0]] = numpy.full(len(samples), self.grid[equation.params["axis"]], numpy.int64)
            elif name in _OPERANDS or name == "dma_start":
                # What is read past the end may be masked out.
                if name != "get" or not any(mentions(each, "select_n") for each in jaxpr.eqns):
                    yield from self.access(equation, here, known, samples)
            elif name == "cond":
                yield from self.branches(equation, here, known, samples)
            elif name == "scan":
                yield from self.loop(equation, here, known, samples)
            else:
                known.update(_results(equation, known, len(samples)))

    def branches(
        self, equation: Any, chain: tuple[Any, ...], known: Mapping[Any, Any], samples: list[int]
    ) -> Iterator[Found]:
        chosen = known.get(equation.invars[0]) if is_variable(equation.invars[0]) else None
        if chosen is None:
            return
        programs = list(compat.sub_jaxprs(equation))
        for number, program in enumerate(programs):
            at = [n for n, each in enumerate(chosen) if min(max(int(each), 0), len(programs) - 1) == number]
            inner = {
                variable: known[operand][at]
                for variable, operand in zip(program.invars, equation.invars[1:], strict=True)
                if is_variable(operand) and operand in known
            }
            yield from self.run(program, chain, inner, [samples[n] for n in at])

    def loop(
        self, equation: Any, chain: tuple[Any, ...], known: Mapping[Any, Any], samples: list[int]
    ) -> Iterator[Found]:
        """A loop that counts, by one, something that is known where it starts."""
        import numpy

        program, length = compat.open_jaxpr(equation.params["jaxpr"]), equation.params["length"]
        if equation.params.get("reverse") or not 0 < length * len(samples) <= _LARGEST:
            return
        consts, carried = compat.scan_parts(equation)
        by_output = {out: each for each in program.eqns for out in each.outvars}
        inner: dict[Any, Any] = {}
        for position, (variable, operand) in enumerate(zip(program.invars, equation.invars, strict=True)):
            start = _value(operand, known, len(samples)) if not operand.aval.shape else None
            if start is None or position >= consts + carried:
                continue
            if position >= consts:
                step = by_output.get(program.outvars[position - consts])
                if step is None or step.primitive.name != "add" or step.invars[0] is not variable:
                    continue
                if int(getattr(step.invars[1], "val", 0)) != 1:
                    continue
                inner[variable] = (start[:, None] + numpy.arange(length)).reshape(-1)
            else:
                inner[variable] = numpy.repeat(start, length)
        yield from self.run(program, chain, inner, [at for at in samples for _ in range(length)])

    def access(
        self, equation: Any, chain: tuple[Any, ...], known: Mapping[Any, Any], samples: list[int]
    ) -> Iterator[Found]:
        for indexer in _indexers(equation):
            for dimension, (index, length) in enumerate(zip(indexer.indices, indexer.shape, strict=False)):
                sliced = hasattr(index, "size") and hasattr(index, "start")
                at = index.start if sliced else index
                start = _value(at, known, len(samples)) if not isinstance(at, int) and is_variable(at) else None
                if start is None or not isinstance(length, int) or (sliced and not isinstance(index.size, int)):
                    continue
                if start.ndim > 1 and equation.primitive.name == "get":
                    continue
                extent = (index.size - 1) * (index.stride or 1) + 1 if sliced else 1
                flat = start.reshape(len(samples), -1)
                low, high = flat.min(axis=1), flat.max(axis=1)
                outside = [n for n in range(len(samples)) if low[n] < 0 or high[n] + extent > length]
                if outside and isinstance(extent, int):
                    n = outside[0]
                    first = int(low[n] if low[n] < 0 else high[n])
                    facts = {
                        "step": list(self.steps[samples[n]]),
                        "first": first,
                        "last": first + extent - 1,
                        "dimension": dimension,
                        "length": length,
                        "access": equation.primitive.name,
                    }
                    yield Found("dynamic-index-out-of-bounds", places(chain), facts)
                    return


def _indexers(equation: Any) -> Iterator[Any]:
    """The first index of each ref of an access, where nothing else goes before it."""
    tree = equation.params["tree"]
    if equation.primitive.name == "dma_start":
        for part in tree.unflatten(equation.invars):
            yield from list(getattr(part, "transforms", ()))[:1]
        return
    transforms = tree.unflatten(equation.invars[_OPERANDS[equation.primitive.name] :])
    if equation.primitive.name != "get" and any("mask" in str(key) for key in equation.params):
        return
    yield from [each for each in list(transforms)[:1] if hasattr(each, "indices") and hasattr(each, "shape")]


def _value(variable: Any, known: Mapping[Any, Any], count: int) -> Any:
    import numpy

    if isinstance(variable, int):
        return numpy.full(count, variable, numpy.int64)
    if hasattr(variable, "val"):
        single = numpy.asarray(variable.val)
        return numpy.full(count, single) if single.ndim == 0 and single.dtype.kind in "iub" else None
    try:
        return known.get(variable)
    except TypeError:
        return None


def _results(equation: Any, known: Mapping[Any, Any], count: int) -> dict[Any, Any]:
    """What an equation gives in each sample, for arithmetic on whole numbers; nothing for anything else."""
    import numpy

    shapes = [tuple(out.aval.shape) for out in equation.outvars]
    if len(shapes) != 1 or len(shapes[0]) > 1 or math.prod(shapes[0]) * count > _LARGEST:
        return {}
    out, shape, name = equation.outvars[0], shapes[0], equation.primitive.name
    if name == "iota":
        return {out: numpy.broadcast_to(numpy.arange(shape[0]), (count, *shape))}
    operands = [_value(each, known, count) for each in equation.invars]
    if not operands or any(each is None for each in operands):
        return {}
    if name in _SHAPING:
        value = operands[0].reshape(count, -1)
        return {out: numpy.broadcast_to(value, (count, *shape)) if shape else value[:, 0]}
    inner = list(compat.sub_jaxprs(equation))
    if len(inner) == 1 and name in ("pjit", "jit", "closed_call"):
        own = dict(zip(inner[0].invars, operands, strict=True))
        for each in inner[0].eqns:
            own.update(_results(each, own, count))
        result = _value(inner[0].outvars[0], own, count)
        return {out: result} if result is not None else {}
    if shape:
        operands = [each.reshape(count, 1) if each.ndim == 1 else each for each in operands]
    try:
        (result,) = numbers.elementwise(equation, operands)
    except numbers.UnknownError:
        return {}
    return {out: numpy.broadcast_to(numpy.asarray(result), (count, *shape))}
