"""What the live objects in a traceback know, as plain facts (keys: docs/protocol.md, 'Facts of a fault')."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from . import (
    births,
    compat,
    frames,
    internals,
    know_captured,
    know_effects,
    know_given,
    know_operands,
    know_specs,
    know_values,
    layouts,
    libraries,
)


def of(error: BaseException) -> dict[str, Any]:
    """The facts of an exception; a collector that fails adds none."""
    facts: dict[str, Any] = {}
    every = (_ref_types, _specs, _index_map, _operands, _refused, _library, _asserted, _conflict, _operation, _launch)
    for collect in every:
        with contextlib.suppress(Exception):
            collect(error, facts)
    return facts


def _stack(error: BaseException) -> Iterator[tuple[types.FrameType, dict[str, Any]]]:
    """The frames of a traceback, innermost first, with a copy of their locals."""
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append(entry.tb_frame)
        entry = entry.tb_next
    for frame in reversed(found):
        yield frame, dict(frame.f_locals)


# -- refs given to run_state, run_scoped, scratch_types --------------------------------------------------------------

_REF_ARGUMENTS = {
    ("jax/_src/state/discharge.py", "run_state.<locals>.wrapped"): ("args",),
    ("jax/_src/pallas/primitives.py", "run_scoped"): ("types", "kw_types"),
    ("jax/_src/pallas/mosaic_gpu/core.py", "kernel"): ("scratch_types", "scratch_shapes"),
}


def _ref_types(error: BaseException, facts: dict[str, Any]) -> None:
    for frame, names in _stack(error):
        code = frame.f_code
        file = frames.jax_file(code.co_filename) or ""
        for (where, function), arguments in _REF_ARGUMENTS.items():
            qualname = getattr(code, "co_qualname", code.co_name)
            if file == where and (qualname == function or qualname.startswith(f"{function}.<locals>")):
                found = [entry for name in arguments for entry in _leaves(names.get(name))]
                if found:
                    facts.setdefault("ref_types", found)
                    facts.setdefault("ref_types_of", function.split(".")[0])
                    return


def _leaves(tree: Any) -> list[dict[str, Any]]:
    import jax

    uninitialized = internals.get(internals.UNINITIALIZED)
    if tree is None:
        return []
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    found = []
    for path, leaf in leaves:
        initial = getattr(leaf, "_init", uninitialized)
        arraylike = compat.is_tracer(leaf) or hasattr(leaf, "__array__")
        found.append(
            {
                "path": jax.tree_util.keystr(path),
                "kind": type(leaf).__name__,
                "shape": [int(d) for d in getattr(leaf, "shape", ())],
                "dtype": _dtype_name(getattr(leaf, "dtype", None)),
                "initialized": arraylike or initial is not uninitialized,
                "frames": births.of(leaf),
            }
        )
    return found


def _dtype_name(dtype: Any) -> str:
    import jax

    if dtype is None:
        return ""
    try:
        return str(jax.numpy.dtype(dtype).name)
    except TypeError:
        return str(dtype)


# -- specs and index maps --------------------------------------------------------------------------------------------


def _specs(error: BaseException, facts: dict[str, Any]) -> None:
    """The user's specs that jax's innermost frames were looking at, nearest first."""
    found: list[dict[str, Any]] = []
    for frame, names in _stack(error):
        if frames.jax_file(frame.f_code.co_filename) is None:
            if frames.origin(frame.f_code.co_filename) == "workspace":
                break  # what lies outside is the user's own business
            continue
        for name, value in names.items():
            for item in value if isinstance(value, (tuple, list)) and len(value) <= 64 else (value,):
                places = births.of(item)
                if places and all(entry["frames"] != places for entry in found):
                    found.append({"kind": type(item).__name__, "local": name, "frames": places})
    if found:
        facts["specs"] = found[:12]


def _index_map(error: BaseException, facts: dict[str, Any]) -> None:
    for _, names in _stack(error):
        for value in names.values():
            function = getattr(value, "index_map", None)
            code = getattr(function, "__code__", None)
            if code is not None and frames.origin(code.co_filename) is not None:
                facts["index_map"] = frames.function_fact(code)
                return


# -- operands --------------------------------------------------------------------------------------------------------


def _operands(error: BaseException, facts: dict[str, Any]) -> None:
    operands = know_operands.of_call(list(_stack(error)))
    if operands:
        facts["operands"] = operands
    allocating = know_operands.allocating(list(_stack(error)))
    if allocating:
        facts["allocating"] = allocating
    unknown = know_effects.unknown_ref(list(_stack(error)))
    if unknown:
        facts["unknown_ref"] = unknown


def _refused(error: BaseException, facts: dict[str, Any]) -> None:
    refused = know_given.refused(list(_stack(error)))
    if refused is not None:
        facts["refused"] = refused


def _library(error: BaseException, facts: dict[str, Any]) -> None:
    library = libraries.facts(error)
    if library is not None:
        facts["library"] = library


def _asserted(error: BaseException, facts: dict[str, Any]) -> None:
    asserted = libraries.asserted(error)
    if asserted is not None:
        facts["asserted"] = asserted


# -- launches, values, captured arrays ---------------------------------------------------------------------------------


def _launch(error: BaseException, facts: dict[str, Any]) -> None:
    stack = list(_stack(error))
    for module in (know_specs, know_values, know_captured):
        with contextlib.suppress(Exception):
            module.collect(stack, facts)


# -- MLIR ------------------------------------------------------------------------------------------------------------


def _operations(error: BaseException) -> Iterator[Any]:
    """MLIR operations that rules were lowering, innermost first (locals named ``op`` or ``..._op``).

    Only those deeper than the innermost loop over equations: outer ones are results of earlier equations.
    """
    for frame, names in _stack(error):
        file = frames.jax_file(frame.f_code.co_filename) or ""
        if compat.is_equation(names.get("eqn")):
            return
        if "mosaic" not in file and "triton" not in file:
            continue
        own = [name for name in names if name == "op" or (name.endswith("_op") and not name.startswith("_"))]
        for name in sorted(own, key=lambda each: each != "op"):
            if hasattr(type(names[name]), "location"):
                yield names[name]


def operation_place(error: BaseException) -> list[frames.Frame]:
    """The user's places in the location of the innermost MLIR operation that has any, innermost first."""
    for operation in _operations(error):
        with contextlib.suppress(Exception):
            found = frames.of_location(operation.location)
            if found:
                return found
    return []


def operation_primitive(error: BaseException) -> str:
    """The primitive that the innermost MLIR operation was lowered from, as its location names it; "" where it does not.

    Operations from inside of a library function have a name and no place.
    """
    for operation in _operations(error):
        with contextlib.suppress(Exception):
            return frames.primitive_of_location(operation.location)
    return ""


def _operation(error: BaseException, facts: dict[str, Any]) -> None:
    for operation in _operations(error):
        with contextlib.suppress(Exception):  # an operation may be gone with its module
            if frames.of_location(operation.location):
                facts["operation"] = str(operation.operation.name)
                return


def _conflict(error: BaseException, facts: dict[str, Any]) -> None:
    core = layouts.conflict([(frame, names) for frame, names in _stack(error)])
    if core:
        facts["conflict"] = core
