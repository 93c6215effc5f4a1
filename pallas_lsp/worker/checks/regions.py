"""Which part of which memory an operation of a Mosaic GPU kernel is about, with indices that are known numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LOGICAL = ("UnswizzleRef", "UntilingTransform")
"""They undo how memory is arranged: what is indexed after them is the ref as the user sees it."""
_REMOTE = ("Peer", "Multicast", "Cluster", "Alias", "Union")


class Memory:
    """One allocation; the refs of a program are names of it."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval
        space = getattr(aval, "memory_space", None)
        self.space = str(getattr(space, "value", space) or "").lower()
        self.known = self.space in ("smem", "tmem") and "Union" not in type(aval).__name__
        self.barrier = getattr(getattr(aval, "dtype", None), "num_arrivals", None)
        self.cluster = "Cluster" in type(getattr(aval, "dtype", None)).__name__


@dataclass(frozen=True)
class Region:
    """A box of an allocation; ``box`` None is all of it."""

    memory: Memory
    shape: tuple[int, ...] = ()
    box: tuple[tuple[int, int], ...] | None = None

    def meets(self, other: Region) -> bool:
        """Whether they certainly have an element in common."""
        if self.memory is not other.memory:
            return False
        if self.box is None or other.box is None:
            return True
        if self.shape != other.shape:
            return False
        both = zip(self.box, other.box, strict=True)
        return all(a < b + m and b < a + n for (a, n), (b, m) in both)

    def exceeds(self, other: Region) -> bool:
        """Whether it has elements that are not in the other."""
        if other.box is None or self.memory is not other.memory:
            return False
        if self.box is None:
            return other.box != tuple((0, size) for size in other.shape)
        both = zip(self.box, other.box, strict=True)
        return any(a < b or b + m < a + n for (a, n), (b, m) in both)


@dataclass(frozen=True)
class Operand:
    """A ref of an operation and the transforms that it is used through."""

    ref: Any
    transforms: tuple[Any, ...]


_TREES = {
    "get": (("ref", "tree"),),
    "load": (("ref", "tree"),),
    "async_load": (("ref", "tree"),),
    "swap": (("ref", "tree"), ("value", "")),
    "addupdate": (("ref", "tree"), ("value", "")),
    "store": (("ref", "tree"), ("value", "")),
    "async_store_tmem": (("ref", "tree"), ("value", "")),
    "async_copy_smem_to_tmem": (("source", "smem_tree"), ("target", "tmem_tree")),
    "copy_smem_to_gmem": (("source", "src_transforms_treedef"), ("target", "dst_transforms_treedef")),
    "barrier_wait": (("barrier", "transforms_treedef"),),
    "barrier_arrive": (("barrier", "transforms_treedef"),),
    "barrier_arrive_and_wait": (("barrier", "transforms_treedef"),),
    "tcgen05_commit_arrive": (("barrier", "barrier_transforms_tree"),),
    "wgmma_ref": (("acc", "acc_transforms_tree"), ("a", "a_transforms_tree"), ("b", "b_transforms_tree")),
}
"""The operands of an operation in order, each with the parameter that has the tree of its transforms."""


def operands(equation: Any) -> dict[str, Operand]:
    """The refs of an operation by their roles; a KeyError for an operation that is not known."""
    params, values = equation.params, list(equation.invars)
    roles = _roles(equation)
    more = 2 * bool(params.get("scaled")) + bool(params.get("sparse"))
    rest = values[len(roles) + more :]
    found = {}
    for (role, key), value in zip(roles, values, strict=False):
        tree = params.get(key) if key else None
        count = tree.num_leaves if tree is not None else 0
        transforms = tree.unflatten(rest[:count]) if tree is not None else ()
        rest = rest[count:]
        found[role] = Operand(value, tuple(transforms or ()))
    return found


def _roles(equation: Any) -> list[tuple[str, str]]:
    name, params = equation.primitive.name, equation.params
    if name == "copy_gmem_to_smem":
        roles = [("source", "src_transforms_treedef"), ("target", "dst_transforms_treedef")]
        return [*roles, ("barrier", "barrier_transforms_treedef")] if params.get("has_barrier", True) else roles
    if name == "tcgen05_mma":
        roles = [("acc", "acc_transforms_tree"), ("a", "a_transforms_tree"), ("b", "b_transforms_tree")]
        roles.append(("accumulate", ""))
        return [*roles, ("barrier", "barrier_transforms_tree")] if params.get("arrive") else roles
    return list(_TREES[name])


def region(operand: Operand, memory: Memory, value: Callable[[Any], int | None]) -> Region | None:
    """The part that an operand is; None where it is not known exactly."""
    if not memory.known:
        return None
    shape: tuple[int, ...] = ()
    box: list[tuple[int, int]] | None = None
    live: list[int] = []
    rearranged = False
    for transform in operand.transforms:
        name = type(transform).__name__
        if name in _LOGICAL and box is None:
            continue
        if any(word in name for word in _REMOTE):
            return None
        if name != "NDIndexer":
            rearranged = True
            continue
        if rearranged:
            return None
        if box is None:
            shape = tuple(transform.shape)
            box = [(0, size) for size in shape]
            live = list(range(len(shape)))
        if len(transform.indices) != len(live):
            return None
        kept = []
        for dimension, index in zip(live, transform.indices, strict=True):
            part = _part(index, value)
            if part is None:
                return None
            start, size, scalar = part
            box[dimension] = (box[dimension][0] + start, size)
            if not scalar:
                kept.append(dimension)
        live = kept
    return Region(memory, shape, tuple(box) if box is not None else None)


def _part(index: Any, value: Callable[[Any], int | None]) -> tuple[int, int, bool] | None:
    """(start, size, whether it takes one element) of one index."""
    if hasattr(index, "start") and hasattr(index, "size"):
        start = value(index.start)
        if start is None or not isinstance(index.size, int) or getattr(index, "stride", 1) != 1:
            return None
        return start, index.size, False
    number = value(index)
    return None if number is None else (number, 1, True)


def slot(operand: Operand, memory: Memory, value: Callable[[Any], int | None]) -> tuple[int, ...] | None:
    """The index of one barrier among those that are allocated together; None where it is not known."""
    found: tuple[int, ...] = ()
    for transform in operand.transforms:
        if type(transform).__name__ != "NDIndexer" or found:
            return None
        numbers = [_part(index, value) for index in transform.indices]
        if any(part is None or part[1] != 1 for part in numbers):
            return None
        found = tuple(part[0] for part in numbers if part is not None)
    if not found and getattr(memory.aval, "size", 1) != 1:
        return None
    return () if getattr(memory.aval, "size", 1) == 1 else found
