"""The refs that an operation at fault works on: what view of which allocation, and where the user made that.

The type that jax gives to a ref in a program is the object that ``get_ref_aval`` of the user's ``plgpu.SMEM(...)``,
``plgpu.ACC(...)`` or ``plgpu.Barrier(...)`` returned, through loops, branches and nested scopes.  So recording those
objects leads from any operand back to its allocation.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from . import births, compat, equations, frames, internals

_MOST = 20_000
_KERNELS = ("mpmd_map", "core_map", "pallas_call")

_allocations: dict[int, tuple[Any, Any]] = {}


def install() -> None:
    """Record from now on which allocation a ref's type belongs to."""
    for name in internals.ALLOCATIONS:
        cls: Any = internals.loaded(name)
        if "get_ref_aval" in getattr(cls, "__dict__", {}):
            cls.get_ref_aval = _recorded(cls.get_ref_aval)


def _recorded(original: Any) -> Any:
    @functools.wraps(original)
    def get_ref_aval(self: Any) -> Any:
        result = original(self)
        aval = getattr(result, "ref", result)
        if len(_allocations) < _MOST:
            _allocations[id(aval)] = (aval, self)
        return result

    return get_ref_aval


def allocation_of(aval: Any) -> Any:
    """The object that a ref was allocated by; None where it was not recorded."""
    known = _allocations.get(id(aval))
    return known[1] if known is not None and known[0] is aval else None


def of_equation(chain: tuple[Any, ...], error: BaseException) -> list[dict[str, Any]]:
    """The operands of the innermost equation of a chain that are refs, with their names in jax where it has any."""
    if not chain:
        return []
    equation = chain[-1]
    arguments = _kernel_arguments(chain)
    found = []
    for name, var, transforms in views(equation):
        known = var.aval if allocation_of(var.aval) is not None else _outside(var, error.__traceback__)
        described = _describe(name, var.aval, transforms, arguments, known)
        if equation.primitive.name == "run_scoped" and (places := _product(equation, var.aval)):
            described["used"] = places
        if name == "acc" and "allocation" not in described and (made := _accumulator(chain, described["shape"])):
            described |= {"allocation": describe_allocation(made), "memory_space": "regs"}
        found.append(described)
    return found


def _outside(var: Any, traceback: types.TracebackType | None) -> Any:
    """The type of a ref where it came from, outside scopes whose programs jax rewrote while it lowered them.

    A rewritten program keeps the order of its refs, so the n-th ref of a type is the n-th of that type outside.
    """
    levels = []
    while traceback is not None:
        names = dict(traceback.tb_frame.f_locals)
        lowered, at = compat.open_jaxpr(names.get("jaxpr")), names.get("eqn")
        if lowered is not None and compat.is_equation(at):
            levels.append((lowered, at))
        traceback = traceback.tb_next
    for level in range(len(levels) - 1, 0, -1):
        program: Any = levels[level][0]
        equation: Any = levels[level - 1][1]
        same = [v for v in program.invars if _key(v.aval) == _key(var.aval)]
        outer = [v for v in equation.invars if _key(v.aval) == _key(var.aval)]
        if var not in same or same.index(var) >= len(outer):
            return None
        var = outer[same.index(var)]
        if allocation_of(var.aval) is not None:
            return var.aval
    return None


def _key(aval: Any) -> tuple[Any, ...]:
    return (type(aval).__name__, str(getattr(aval, "shape", None)), str(getattr(aval, "dtype", None)), space(aval))


def _accumulator(chain: tuple[Any, ...], shape: Any) -> Any:
    """The accumulator of that shape that a scope around an equation allocates.

    While a scope is lowered its accumulator is a plain value, so that the equation itself does not lead to it.
    """
    for equation in reversed(chain):
        if equation.primitive.name == "run_scoped":
            made = [allocation_of(var.aval) for inner in compat.sub_jaxprs(equation) for var in inner.invars]
            found = [m for m in made if type(m).__name__ == "WGMMAAccumulatorRef" and list(m.shape) == shape]
            if found:
                return found[0] if len(found) == 1 else None
    return None


def _product(scope: Any, aval: Any) -> list[frames.Frame]:
    """The user's frames of the first matrix multiplication into an accumulator that a scope allocates."""
    for inner in compat.sub_jaxprs(scope):
        for chain in equations.chains(inner):
            first = chain[-1].invars[:1]
            if chain[-1].primitive.name.startswith("wgmma") and first and first[0].aval is aval:
                return equations.innermost_frames(chain)
    return []


def _kernel_arguments(chain: tuple[Any, ...]) -> list[Any]:
    for equation in chain:
        if equation.primitive.name in _KERNELS:
            inner = next(compat.sub_jaxprs(equation), None)
            return [var.aval for var in inner.invars] if inner is not None else []
    return []


def views(equation: Any) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """(name, variable, transforms) of each ref operand.

    jax keeps the transforms of each operand (slices, tilings) as leaves after all operands, in the order of the trees
    among the equation's parameters.
    """
    if equation.primitive.name == "run_scoped":
        for inner in compat.sub_jaxprs(equation):
            yield from ((f"scope {index}", var, ()) for index, var in enumerate(inner.invars))
        return
    trees = [(_tree_name(key), tree) for key, tree in equation.params.items() if _tree_name(key)]
    leaves = sum(getattr(tree, "num_leaves", 0) for _, tree in trees)
    operands = list(equation.invars[: len(equation.invars) - leaves])
    rest = list(equation.invars[len(operands) :])
    for index, var in enumerate(operands):
        if not hasattr(var.aval, "shape") or (var.aval.shape == () and not compat.is_ref(var.aval)):
            continue  # flags and numbers stand between the refs
        name, tree = trees.pop(0) if trees else ("", None)
        size = getattr(tree, "num_leaves", 0) if tree is not None else 0
        own, rest = rest[:size], rest[size:]
        transforms: tuple[Any, ...] = ()
        if tree is not None:
            with contextlib.suppress(Exception):
                transforms = tuple(tree.unflatten(own))
        if compat.is_ref(var.aval) or name:
            yield name or f"input {index}", var, transforms


def _tree_name(key: str) -> str:
    """The operand whose transforms a parameter of an equation holds."""
    if key in ("tree", "transforms_tree", "transforms_treedef"):
        return "ref"
    for ending in ("_transforms_tree", "_transforms_treedef"):
        if key.endswith(ending):
            return key.removesuffix(ending)
    return ""


def of_call(stack: list[tuple[types.FrameType, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The refs among the arguments of the jax function that the user's code called when an exception came."""
    entered: dict[str, Any] | None = None
    local: dict[str, Any] = {}
    arguments: list[Any] = []
    for frame, names in stack:
        file = frames.jax_file(frame.f_code.co_filename)
        if file is None:
            if frames.origin(frame.f_code.co_filename) is not None:
                break
            continue
        if "pallas" in file or "state" in file:
            count = frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount
            entered = {name: names[name] for name in frame.f_code.co_varnames[:count] if name in names}
            local = names
    for _, names in stack:
        if "kernel_body" in names or "refs" in names:
            refs = names.get("refs")
            if isinstance(refs, tuple) and refs and all(compat.is_ref(getattr(r, "aval", None)) for r in refs):
                arguments = [ref.aval for ref in refs]
    found = []
    for name, value in (entered or {}).items():
        # Most functions of jax first take the view of an argument apart, into names of its own.
        taken = local.get(f"{name}_transforms")
        apart = taken if isinstance(taken, (tuple, list)) else ()
        ref, transforms = getattr(value, "ref", value), getattr(value, "transforms", apart)
        aval = getattr(ref, "aval", None)
        if compat.is_ref(aval):
            found.append(_describe(name, aval, tuple(transforms), arguments))
        elif compat.is_tracer(value):
            found.append({"name": name, **_type(aval)})
    return found


def allocating(stack: list[tuple[types.FrameType, dict[str, Any]]]) -> dict[str, Any] | None:
    """The allocation whose type jax was making when an exception came."""
    for frame, names in stack:
        if frame.f_code.co_name == "get_ref_aval" and hasattr(names.get("self"), "transforms"):
            return describe_allocation(names["self"])
    return None


def barriers(program: Any) -> list[dict[str, Any]]:
    """The barriers that a program allocates."""
    found = []
    for chain in equations.chains(program):
        if chain[-1].primitive.name == "run_scoped":
            for inner in compat.sub_jaxprs(chain[-1]):
                made = [allocation_of(var.aval) for var in getattr(inner, "invars", ())]
                found += [describe_allocation(each) for each in made if "Barrier" in type(each).__name__]
    return found


def _type(aval: Any) -> dict[str, Any]:
    shape = getattr(aval, "shape", None)
    return {
        "shape": [int(d) if isinstance(d, int) else str(d) for d in shape] if shape is not None else None,
        "dtype": _dtype(getattr(aval, "dtype", None)),
    }


def _dtype(dtype: Any) -> str:
    if dtype is None:
        return ""
    try:
        return str(sys.modules["jax"].numpy.dtype(dtype).name)
    except TypeError:
        return str(dtype)


def space(aval: Any) -> str:
    space = getattr(aval, "memory_space", None)
    return str(getattr(space, "value", space) or "gmem").lower()


def _describe(
    name: str, aval: Any, transforms: tuple[Any, ...], arguments: list[Any], known: Any = None
) -> dict[str, Any]:
    described = {"name": name, **_type(aval), "memory_space": space(aval)}
    with contextlib.suppress(Exception):
        described |= _type(internals.get(internals.TRANSFORMED_REF)(aval, transforms).type)
    described["view"] = [type(t).__name__ for t in transforms]
    with contextlib.suppress(Exception):
        slices = [_slices(t) for t in transforms if type(t).__name__ == "NDIndexer"]
        if slices:
            described["slices"] = slices
    made = allocation_of(aval if known is None else known)
    if made is not None:
        described["allocation"] = describe_allocation(made)
    elif (index := next((i for i, a in enumerate(arguments) if a is aval), None)) is not None:
        described["argument"] = index
    return described


def _slices(indexer: Any) -> list[dict[str, Any]]:
    """(start, size, stride) of a slice in each dimension; ``start`` is None where only the running kernel knows it."""
    found = []
    for index in indexer.indices:
        start, size = getattr(index, "start", index), getattr(index, "size", None)
        stride = getattr(index, "stride", 1)
        entry = {"start": int(start) if isinstance(start, int) else None}
        if isinstance(size, int):
            entry |= {"size": size, "stride": stride if isinstance(stride, int) else None}
        found.append(entry)
    return found


def describe_allocation(made: Any) -> dict[str, Any]:
    """What the user allocated, and where."""
    found = {"kind": type(made).__name__, **_type(made), "frames": births.of(made)}
    if getattr(made, "memory_space", None) is not None:
        found["memory_space"] = space(made)
    for name in ("num_arrivals", "num_barriers", "orders_tensor_core", "collective", "layout", "collective_axes"):
        value = getattr(made, name, None)
        if value is not None:
            found[name] = value if isinstance(value, (bool, int)) else str(value)
    if transforms := getattr(made, "transforms", ()):
        found["transforms"] = [type(t).__name__ for t in transforms]
    for transform in transforms or ():
        if (tiling := getattr(transform, "tiling", None)) is not None:
            found["tiling"] = [int(t) for t in tiling]
        elif (swizzle := getattr(transform, "swizzle", None)) is not None:
            found["swizzle"] = int(swizzle)
    return found
