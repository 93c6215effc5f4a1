"""A kernel's program as the checks see it: its body, its refs, and refs followed into inner programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import compat, equations, frames

if TYPE_CHECKING:
    from .consumers import Use

_KERNELS = ("pallas_call", "mpmd_map", "core_map")


@dataclass
class Found:
    """A fault: the name of the check, the user's frames (innermost last), facts, and other places with a text each."""

    check: str
    frames: list[frames.Frame]
    facts: dict[str, Any] = field(default_factory=dict)
    related: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Kernel:
    """``equation``: the ``pallas_call``, ``mpmd_map`` or ``core_map``; ``chain``: it and the equations around it."""

    equation: Any
    chain: tuple[Any, ...]
    backend: str
    uses: tuple[Use, ...] = ()
    """What becomes of each output, as far as the program around the kernel shows it."""

    @property
    def body(self) -> Any:
        """The program of the kernel's body."""
        return next(compat.sub_jaxprs(self.equation))

    @property
    def grid_mapping(self) -> Any:
        """The grid and block mappings of a ``pallas_call``; None for other kernels."""
        return self.equation.params.get("grid_mapping")

    def bodies(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """The body and every program inside it, with the equations around each."""
        pending: list[tuple[Any, tuple[Any, ...]]] = [(jaxpr, self.chain) for jaxpr in compat.sub_jaxprs(self.equation)]
        while pending:
            jaxpr, chain = pending.pop()
            yield jaxpr, chain
            for equation in jaxpr.eqns:
                pending += [(inner, (*chain, equation)) for inner in compat.sub_jaxprs(equation)]

    def equations(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        for jaxpr, chain in self.bodies():
            for equation in jaxpr.eqns:
                yield equation, (*chain, equation)

    def output_operands(self) -> list[tuple[int, Any, Any]]:
        """(number, ref of the body, block mapping) of each output of a ``pallas_call`` that no input is aliased to."""
        mapping = self.grid_mapping
        if mapping is None:
            return []
        aliases = dict(self.equation.params.get("input_output_aliases") or ())
        first = mapping.num_index_operands + mapping.num_inputs
        return [
            (number, self.body.invars[first + number], mapping.block_mappings[mapping.num_inputs + number])
            for number in range(mapping.num_outputs)
            if number not in aliases.values()
        ]

    def operand(self, block: Any) -> dict[str, Any]:
        """What the facts say of an operand with a block: whose spec it has, and the types of array and block."""
        mapping = self.grid_mapping
        position = next((i for i, each in enumerate(mapping.block_mappings) if each is block), 0)
        is_input = position < mapping.num_inputs
        return {
            "operand": str(block.origin),
            "role": "inputs" if is_input else "outputs",
            "index": position if is_input else position - mapping.num_inputs,
            "argument": mapping.num_index_operands + position,
            "array": compat.notation(block.array_aval),
            "shape": [size if isinstance(size, int) else str(size) for size in block.array_aval.shape],
            "block": [block_size(dimension) for dimension in block.block_shape],
            "grid": [size if isinstance(size, int) else None for size in mapping.grid],
            "index_map": source_of(block),
        }

    def scratch(self) -> list[Any]:
        """The refs of the body that the scratch types of a ``pallas_call`` became."""
        mapping = self.grid_mapping
        if mapping is None:
            return []
        return list(self.body.invars[mapping.num_index_operands + mapping.num_inputs + mapping.num_outputs :])

    def allocations(self) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
        """(program, ref, chain) of each ref that the kernel allocates itself: nothing outside that program has it."""
        for ref in self.scratch():
            yield self.body, ref, self.chain
        for equation, chain in self.equations():
            if equation.primitive.name == "run_scoped":
                for jaxpr in compat.sub_jaxprs(equation):
                    for ref in jaxpr.invars:
                        yield jaxpr, ref, chain

    def threads(self) -> int:
        """How many threads run the body of a Mosaic GPU kernel."""
        meshes = self.equation.params.get("meshes") or (self.equation.params.get("mesh"),)
        return max((getattr(mesh, "num_threads", None) or 1 for mesh in meshes), default=1)


def kernels(program: Any, backend: str, around: Any = None) -> Iterator[Kernel]:
    """The kernels in a program; ``around``: the program that it was taken out of.

    The code of single warps is a map inside a kernel and no kernel of its own.
    """
    from .consumers import uses_of

    for chain in equations.chains(program):
        *outer, last = (equation.primitive.name in _KERNELS for equation in chain)
        if last and not any(outer):
            yield Kernel(chain[-1], chain, backend, tuple(uses_of(around or program, chain[-1])))


def places(chain: tuple[Any, ...]) -> list[frames.Frame]:
    return equations.innermost_frames(chain)


def is_variable(value: Any) -> bool:
    return not hasattr(value, "val")


def producers(jaxpr: Any, variable: Any) -> Iterator[Any]:
    """The equations of a body that a value is computed from, nearest first."""
    by_output = {out: equation for equation in jaxpr.eqns for out in equation.outvars}
    pending, seen = [variable], set()
    while pending:
        current = pending.pop()
        if not is_variable(current) or current in seen:
            continue
        seen.add(current)
        equation = by_output.get(current)
        if equation is not None:
            yield equation
            pending += list(equation.invars)


def indexed(equation: Any) -> bool:
    """Whether an access goes to a part of its ref, so that two accesses may not meet."""
    return any("NDIndexer" in str(value) for key, value in equation.params.items() if "tree" in key)


def mentions(equation: Any, word: str) -> bool:
    """Whether an equation or one inside it has a primitive whose name holds a word."""
    if word in equation.primitive.name:
        return True
    return any(mentions(inner, word) for jaxpr in compat.sub_jaxprs(equation) for inner in jaxpr.eqns)


def block_size(dimension: Any) -> int | None:
    """Elements that one step of a block index moves by; None for what is not known."""
    if isinstance(dimension, int):
        return dimension
    name = type(dimension).__name__
    if name == "Blocked":
        size = dimension.block_size
        return size if isinstance(size, int) else None
    return 1 if name == "Squeezed" or dimension is None else None


def source_of(block: Any) -> str:
    """``function at file:line`` of a block's index map."""
    info = getattr(compat.open_jaxpr(block.index_map_jaxpr), "debug_info", None)
    return str(getattr(info, "func_src_info", None) or "")


def holders(jaxpr: Any, variable: Any) -> list[tuple[Any, Any]] | None:
    """(program, variable) wherever a ref goes, the start included; None where it goes to what is not understood."""
    found = [(jaxpr, variable)]
    for equation in jaxpr.eqns:
        if any(operand is variable for operand in equation.invars) and any(compat.sub_jaxprs(equation)):
            inner = inner_variables(equation, variable)
            if inner is None:
                return None
            for program, own in inner:
                deeper = holders(program, own)
                if deeper is None:
                    return None
                found += deeper
    return found


def memory_space(variable: Any) -> str:
    space = getattr(variable.aval, "memory_space", None)
    return str(getattr(space, "value", space) or "").lower()


_IN_ORDER = (
    *("scan", "pjit", "jit", "closed_call", "core_call", "jaxpr_call"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vmap_call"),
)


def inner_variables(equation: Any, variable: Any) -> list[tuple[Any, Any]] | None:
    """(program, variable) for each program inside an equation that a variable is handed to.

    None where it is handed to something whose programs do not take its operands in order.
    """
    positions = [number for number, operand in enumerate(equation.invars) if operand is variable]
    found = []
    for jaxpr in compat.sub_jaxprs(equation):
        inner = [*jaxpr.constvars, *jaxpr.invars]
        name = equation.primitive.name
        if name == "cond":
            inner, shift = list(jaxpr.invars), 1
        elif name == "run_scoped":
            inner, shift = list(jaxpr.constvars), 0
        elif name in _IN_ORDER:
            inner, shift = list(jaxpr.invars), 0
        else:
            return None
        for position in positions:
            if not 0 <= position - shift < len(inner):
                return None
            found.append((jaxpr, inner[position - shift]))
    return found
