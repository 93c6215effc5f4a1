"""A program read in order, with what is still under way for each ref, into scopes, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import compat
from .kernel import Kernel, inner_variables, is_variable, mentions

Chain = tuple[Any, ...]
Pending = dict[Any, Chain]
"""For each ref the chain of the equation that made it so."""

READERS: dict[str, tuple[tuple[int, str], ...]] = {
    "get": ((0, "tree"),),
    "wgmma_ref": ((1, "a_"), (2, "b_")),
    "wgmma": ((1, "a_"), (2, "b_")),
    "copy_smem_to_gmem": ((0, "src_"),),
    "tcgen05_mma": ((1, "a_"), (2, "b_")),
}
"""What reads memory: the positions of the refs, and how the parameter with their transforms begins."""


def part_of(equation: Any, key: str) -> bool:
    """Whether an operand is a slice of its ref, by the parameter that holds its transforms."""
    trees = [value for name, value in equation.params.items() if "tree" in name and name.startswith(key)]
    return any("NDIndexer" in str(tree) for tree in trees)


def reads(
    kernel: Kernel,
    starts: Callable[[Any], Any],
    ends: str,
    readers: tuple[str, ...] = tuple(READERS),
) -> Iterator[tuple[Chain, Chain]]:
    """(reading chain, starting chain) for each first read of a ref that ``starts`` named and no ``ends`` came after."""
    for jaxpr in compat.sub_jaxprs(kernel.equation):
        yield from _walk(jaxpr, kernel.chain, {}, starts, ends, readers)


def _walk(
    jaxpr: Any, chain: Chain, pending: Pending, starts: Callable[[Any], Any], ends: str, readers: tuple[str, ...]
) -> Iterator[tuple[Chain, Chain]]:
    for equation in jaxpr.eqns:
        here = (*chain, equation)
        name = equation.primitive.name
        started = starts(equation)
        if started is not None:
            pending[started] = here
            continue
        inner = list(compat.sub_jaxprs(equation))
        if inner:
            handed: dict[int, Pending] = {id(program): {} for program in inner}
            for ref, begun in pending.items():
                for program, own in inner_variables(equation, ref) or ():
                    handed[id(program)][own] = begun
            for program in inner:
                yield from _walk(program, here, handed[id(program)], starts, ends, readers)
            # What a scope or a call leaves under way stays so after it.
            for ref in list(pending):
                left = [handed[id(p)].get(own) for p, own in inner_variables(equation, ref) or ()]
                if any(mentions(each, ends) for p in inner for each in p.eqns) or (left and None in left):
                    del pending[ref]
            continue
        if ends in name:
            pending.clear()
        elif name in readers:
            for position, key in READERS[name]:
                operand = equation.invars[position] if position < len(equation.invars) else None
                since = pending.get(operand) if operand is not None and is_variable(operand) else None
                if since is not None and not part_of(equation, key):
                    yield here, since
                    pending.pop(operand, None)
