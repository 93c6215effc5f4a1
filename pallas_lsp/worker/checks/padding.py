"""A reduction over a block that reaches past the end of its array: padding is added up with the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import compat
from .block_indices import _size
from .kernel import Found, Kernel, indexed, is_variable, places

_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin")


def check(kernel: Kernel) -> Iterator[Found]:
    """A reduction of a whole input block along a dimension that its size does not divide, with no mask between."""
    mapping = kernel.grid_mapping
    if mapping is None:
        return
    for number in range(mapping.num_inputs):
        block = mapping.block_mappings[number]
        shape = tuple(block.array_aval.shape)
        sizes = [_size(dimension) for dimension in block.block_shape]
        kept = [d for d, dimension in enumerate(block.block_shape) if type(dimension).__name__ == "Blocked"]
        if None in sizes or len(sizes) != len(shape):
            continue
        partial = [at for at, d in enumerate(kept) if shape[d] % (sizes[d] or 1)]
        ref = kernel.body.invars[mapping.num_index_operands + number]
        for axis in partial:
            found = _reduced(kernel, ref, axis)
            if found is not None:
                dimension = kept[axis]
                facts = {
                    "operand": str(block.origin),
                    "array": compat.notation(block.array_aval),
                    "block": sizes,
                    "dimension": dimension,
                    "rest": shape[dimension] % (sizes[dimension] or 1),
                    "reduction": found[-1].primitive.name,
                }
                yield Found("reduction-over-padding", places(found), facts)
                return


def _reduced(kernel: Kernel, ref: Any, axis: int) -> tuple[Any, ...] | None:
    """The reduction along ``axis`` that a whole read of ``ref`` comes to by elementwise steps alone."""
    carried: set[Any] = set()
    for equation in kernel.body.eqns:
        name = equation.primitive.name
        if name == "get" and equation.invars[0] is ref and not indexed(equation):
            carried.update(equation.outvars)
            continue
        operands = [v for v in equation.invars if is_variable(v) and v in carried]
        if not operands:
            continue
        if name in _REDUCTIONS and axis in equation.params.get("axes", ()):
            return (*kernel.chain, equation)
        same = all(tuple(out.aval.shape) == tuple(operands[0].aval.shape) for out in equation.outvars)
        if (
            same
            and name not in ("select_n", "select_and_scatter_add", "clamp")
            and not list(compat.sub_jaxprs(equation))
        ):
            carried.update(equation.outvars)
    return None
