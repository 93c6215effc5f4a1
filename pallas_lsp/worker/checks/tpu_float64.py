"""Refs of 64-bit floats in a TPU kernel: jax lowers them, but no TPU has registers for them."""

from __future__ import annotations

from collections.abc import Iterator

from .. import compat
from .kernel import Found, Kernel, places


def check(kernel: Kernel) -> Iterator[Found]:
    """The first operand of a TPU kernel that is float64 (or complex128)."""
    if kernel.backend != "tpu" or kernel.grid_mapping is None:
        return
    mapping = kernel.grid_mapping
    first = mapping.num_index_operands
    for number, ref in enumerate(kernel.body.invars[first : first + mapping.num_inputs + mapping.num_outputs]):
        if str(getattr(ref.aval, "dtype", "")) in ("float64", "complex128"):
            is_input = number < mapping.num_inputs
            name = f"input {number}" if is_input else f"output {number - mapping.num_inputs}"
            yield Found("tpu-float64", places(kernel.chain), {"operand": name, "type": compat.notation(ref.aval)})
            return
