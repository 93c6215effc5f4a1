"""A ref that leaves the scope which allocated it."""

from __future__ import annotations

from collections.abc import Iterator

from .. import compat
from .kernel import Found, Kernel, memory_space, places


def check(kernel: Kernel) -> Iterator[Found]:
    """``run_scoped`` whose result is a ref: its memory is free by then."""
    for equation, chain in kernel.equations():
        if equation.primitive.name != "run_scoped":
            continue
        refs = [out for out in equation.outvars if compat.is_ref(out.aval)]
        if refs:
            inner = next(compat.sub_jaxprs(equation))
            body = getattr(getattr(inner, "debug_info", None), "func_src_info", None) or ""
            facts = {"body": body, "memory_space": memory_space(refs[0])}
            yield Found("ref-outlives-scope", places(chain), facts)
