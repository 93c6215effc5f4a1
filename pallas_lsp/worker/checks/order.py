"""A program read in order, with what is still under way for each ref, into scopes, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


_LOOPS = ("scan", "while")


def part_of(equation: Any, key: str) -> bool:
    """Whether an operand is a slice of its ref, by the parameter that holds its transforms."""
    trees = [value for name, value in equation.params.items() if "tree" in name and name.startswith(key)]
    return any("NDIndexer" in str(tree) for tree in trees)


WRITERS: dict[str, tuple[tuple[int, str], ...]] = {
    "swap": ((0, "tree"),),
    "addupdate": ((0, "tree"),),
    "copy_gmem_to_smem": ((1, "dst_"),),
}
"""What writes memory, likewise."""


@dataclass(frozen=True)
class Order:
    """What to look for: a use of a ref that ``starts`` names for an earlier equation, with no end in between.

    ``ends``: words in the names of primitives after which nothing is under way.  ``users``: what uses refs.
    ``again``: bodies of loops are read twice, since what one iteration leaves under way the next one meets.
    """

    starts: Callable[[Any], Sequence[Any]]
    ends: tuple[str, ...]
    users: Mapping[str, tuple[tuple[int, str], ...]]
    again: bool = False

    def ended_by(self, equation: Any) -> bool:
        return any(mentions(equation, word) for word in self.ends)


def uses(kernel: Kernel, order: Order) -> Iterator[tuple[Chain, Chain]]:
    """(using chain, starting chain) for each first use of a whole ref that comes too early."""
    for jaxpr in compat.sub_jaxprs(kernel.equation):
        yield from _walk(jaxpr, kernel.chain, {}, order)


def _walk(jaxpr: Any, chain: Chain, pending: Pending, order: Order) -> Iterator[tuple[Chain, Chain]]:
    for equation in jaxpr.eqns:
        here = (*chain, equation)
        name = equation.primitive.name
        started = order.starts(equation)
        if started:
            pending.update(dict.fromkeys(started, here))
            continue
        inner = list(compat.sub_jaxprs(equation))
        if inner:
            handed: dict[int, Pending] = {id(program): {} for program in inner}
            for ref, begun in pending.items():
                for program, own in inner_variables(equation, ref) or ():
                    handed[id(program)][own] = begun
            for program in inner * (2 if order.again and name in _LOOPS else 1):
                yield from _walk(program, here, handed[id(program)], order)
            # What a scope or a call leaves under way stays so after it.
            for ref in list(pending):
                left = [handed[id(p)].get(own) for p, own in inner_variables(equation, ref) or ()]
                if any(order.ended_by(each) for p in inner for each in p.eqns) or (left and None in left):
                    del pending[ref]
            continue
        if order.ended_by(equation):
            pending.clear()
        for position, key in order.users.get(name, ()):
            operand = equation.invars[position] if position < len(equation.invars) else None
            since = pending.get(operand) if operand is not None and is_variable(operand) else None
            if since is not None and not part_of(equation, key):
                yield here, since
                pending.pop(operand, None)
