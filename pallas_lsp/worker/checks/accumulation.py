"""A ref that is only ever added to: nothing gives it a first value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import compat
from .kernel import Found, Kernel, inner_variables, is_variable, places


def check(kernel: Kernel) -> Iterator[Found]:
    """Outputs (that no input is aliased to) and scratch refs whose every write depends on their own value."""
    mapping = kernel.grid_mapping
    if mapping is None:
        return
    refs = [(f"output {number}", ref) for number, ref, _ in kernel.output_operands()]
    first = mapping.num_index_operands + mapping.num_inputs + mapping.num_outputs
    refs += [(f"scratch {number}", ref) for number, ref in enumerate(kernel.body.invars[first:])]
    for name, ref in refs:
        writes: list[tuple[Any, bool]] = []
        if _writes(kernel.body, kernel.chain, ref, writes) and writes and all(own for _, own in writes):
            yield Found("accumulator-without-start", places(writes[0][0]), {"operand": name})


def _writes(jaxpr: Any, chain: tuple[Any, ...], ref: Any, found: list[tuple[Any, bool]]) -> bool:
    """Collect the writes to a ref, each with whether it depends on the ref; False where some use is not understood."""
    tainted: set[Any] = set()
    for equation in jaxpr.eqns:
        here = (*chain, equation)
        uses = any(operand is ref for operand in equation.invars)
        name = equation.primitive.name
        depends = any(is_variable(v) and v in tainted for v in equation.invars)
        if uses and name == "get":
            tainted.update(equation.outvars)
        elif uses and name == "addupdate":
            found.append((here, True))
        elif uses and name == "swap":
            if equation.invars[0] is not ref:
                return False
            found.append((here, depends))
        elif uses:
            inner = inner_variables(equation, ref)
            if inner is None or not inner:
                return False
            for program, variable in inner:
                if not _writes(program, here, variable, found):
                    return False
            if depends or any(_reads(program, variable) for program, variable in inner):
                tainted.update(equation.outvars)
        elif depends:
            if any(compat.is_ref(getattr(v, "aval", None)) for v in equation.invars) and name not in ("swap", "get"):
                return False
            tainted.update(equation.outvars)
    return True


def _reads(jaxpr: Any, ref: Any) -> bool:
    return any(any(operand is ref for operand in equation.invars) for equation in jaxpr.eqns)
