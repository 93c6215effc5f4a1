"""An output that the body does nothing with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import compat
from .kernel import Found, Kernel, holders, places


def check(kernel: Kernel) -> Iterator[Found]:
    """Outputs whose refs no operation of the body is given, whose result is used or is the only one."""
    for number, jaxpr, ref in _outputs(kernel):
        equation = kernel.equation
        use = kernel.uses[number] if number < len(kernel.uses) else None
        if use is None or use.filled or (use.dropped and len(kernel.uses) > 1):
            continue
        held = holders(jaxpr, ref)
        if held is not None and not any(_used(program, variable) for program, variable in held):
            argument = next(i for i, v in enumerate(jaxpr.invars) if v is ref)
            facts = {
                "role": "outputs",
                "index": number,
                "argument": argument,
                "stores": 0,
                "outputs": len(equation.outvars),
            }
            yield Found("output-never-written", places(kernel.chain), facts)


def _outputs(kernel: Kernel) -> list[tuple[int, Any, Any]]:
    """(number, program, ref) of each output that no input is aliased to."""
    if kernel.grid_mapping is not None:
        return [(number, kernel.body, ref) for number, ref, _ in kernel.output_operands()]
    equation = kernel.equation
    bodies = list(compat.sub_jaxprs(equation))
    first, count = len(equation.invars), len(equation.outvars)
    if equation.primitive.name != "mpmd_map" or len(bodies) != 1 or len(bodies[0].invars) != first + count:
        return []
    aliased = dict(equation.params.get("input_output_aliases") or ()).values()
    return [(n, bodies[0], bodies[0].invars[first + n]) for n in range(count) if n not in aliased]


def _used(jaxpr: Any, variable: Any) -> bool:
    if any(out is variable for out in jaxpr.outvars):
        return True
    return any(
        any(operand is variable for operand in equation.invars) and not any(compat.sub_jaxprs(equation))
        for equation in jaxpr.eqns
    )
