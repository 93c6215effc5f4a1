"""A ref that leaves the scope which allocated it."""

from __future__ import annotations

from collections.abc import Iterator

from .. import compat
from .kernel import Found, Kernel, memory_space, places


def check(kernel: Kernel) -> Iterator[Found]:
    """``run_scoped`` whose result is a ref that it allocated: its memory is free by then."""
    for equation, chain in kernel.equations():
        if equation.primitive.name != "run_scoped":
            continue
        inner = next(compat.sub_jaxprs(equation))
        own = [v for v in inner.outvars if any(v is allocated for allocated in inner.invars)]
        if not own:
            continue
        allocated = [index for index, v in enumerate(inner.invars) if any(v is each for each in own)]
        results = [out for out in equation.outvars if compat.is_ref(out.aval)]
        body = getattr(getattr(inner, "debug_info", None), "func_src_info", None) or ""
        facts = {
            "body": body,
            "memory_space": memory_space(own[0]),
            "allocated": allocated,
            "ref": compat.notation(own[0].aval),
            "results": len(equation.outvars),
        }
        yield Found("ref-outlives-scope", places(chain), facts, _uses(chain, results))


def _uses(chain: tuple[object, ...], results: list[object]) -> list[dict[str, object]]:
    """The first use of the ref after its scope, in the same program."""
    equation = chain[-1]
    outer = chain[-2] if len(chain) > 1 else None
    for jaxpr in compat.sub_jaxprs(outer) if outer is not None else ():
        if any(each is equation for each in jaxpr.eqns):
            for each in jaxpr.eqns:
                if any(operand is result for operand in each.invars for result in results):
                    return [{"frames": places((*chain[:-1], each)), "text": "the ref is used here"}]
    return []
