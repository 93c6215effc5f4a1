"""The irreducible core of a layout conflict (Mosaic GPU's layout inference under warpgroup semantics).

jax builds a system of assignments and constraints over the values' layouts and says only that it has no solution.  The
system still stands in the frames of the traceback; deleting what is not needed for the contradiction leaves the few
operations that disagree.  Source: jax/experimental/mosaic/gpu/layout_inference.py, ``infer_layout``.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import types
from collections.abc import Callable
from typing import Any

from . import frames

Item = tuple[str, Any, Any]
"""("assignment", variable, constant) or ("constraint", constraint, None)."""

SECONDS = 1.5
_FUEL = 300


def conflict(stack: list[tuple[types.FrameType, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The core, in program order; empty where the traceback holds no system or the time ran out before it was small.

    An entry has ``frames``, ``operation`` (MLIR name), ``layout`` (asked for; empty where the entry only relates
    values) and ``text``.
    """
    for frame, names in stack:
        file = frames.jax_file(frame.f_code.co_filename) or ""
        context: Any = names.get("ctx")
        system: Any = names.get("global_constraint_system")
        if file.endswith("layout_inference.py") and hasattr(system, "constraints") and context is not None:
            items: list[Item] = [("assignment", v, c) for v, c in system.assignments.items()]
            items += [("constraint", constraint, None) for constraint in system.constraints]
            with _mlir_context(system):
                core = _core(items, names.get("arch"))
            described = [entry for item in core if (entry := _describe(item, context)) is not None]
            return _in_program_order(described)
        if file.endswith("layout_inference.py") and type(system).__name__ == "Unsatisfiable" and "module" in names:
            with contextlib.suppress(Exception), names["module"].context:
                return _in_program_order(_contradiction(names["module"]))
    return []


def _in_program_order(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: (entry["frames"][0]["path"], entry["frames"][0]["line"]))


def _contradiction(module: Any) -> list[dict[str, Any]]:
    """Two operations that ask for different layouts of one value: jax drops its system when it meets the second."""
    inference = sys.modules["jax.experimental.mosaic.gpu.layout_inference"]
    context = inference.DerivationContext()
    asked: dict[Any, tuple[Any, Any]] = {}
    found: list[tuple[Any, Any]] = []

    def gather(operation: Any) -> None:
        rule = inference._constraint_system_derivation_rules.get(getattr(operation, "OPERATION_NAME", ""))
        utils = inference.inference_utils
        kinds = (utils.should_have_layout, utils.should_have_tmem_layout, utils.should_have_transforms)
        if found or rule is None or inference.is_terminator(operation) or not any(has(operation) for has in kinds):
            return
        system, mapping = rule(context, operation)
        context.update(mapping)
        for variable, constant in system.assignments.items():
            before = asked.setdefault(variable, (operation, constant))
            if before[1] != constant:
                found.extend([before, (operation, constant)])
                return

    for operation in module.body:
        inference.traverse_op(operation, gather)
    return [entry for operation, constant in found if (entry := _at(operation, constant, None)) is not None]


def _mlir_context(system: Any) -> contextlib.AbstractContextManager[Any]:
    """The MLIR context of the system's operations: the search makes MLIR values, and jax's own context is left."""
    for variable in system.unknowns():
        with contextlib.suppress(Exception):
            return variable.key.operation.context  # type: ignore[no-any-return]
    return contextlib.nullcontext()


def _core(items: list[Item], arch: Any) -> list[Item]:
    deadline = time.monotonic() + SECONDS
    contradicts: Callable[[list[Item]], bool] = _by_propagation
    if not contradicts(items):
        contradicts = functools.partial(_by_search, arch=arch)
        if not _by_search(items, arch, fuel=10 * _FUEL):
            return []
    size = max(1, len(items) // 2)
    while size:
        start = 0
        while start < len(items):
            if time.monotonic() > deadline:
                return items if len(items) <= 12 else []
            shorter = items[:start] + items[start + size :]
            if shorter and contradicts(shorter):
                items = shorter
            else:
                start += size
        size //= 2
    return items


def _system(items: list[Item]) -> Any:
    constraints = sys.modules["jax.experimental.mosaic.gpu.constraints"]
    return constraints.ConstraintSystem(
        assignments={item[1]: item[2] for item in items if item[0] == "assignment"},
        constraints=[item[1] for item in items if item[0] == "constraint"],
    )


def _by_propagation(items: list[Item]) -> bool:
    constraints = sys.modules["jax.experimental.mosaic.gpu.constraints"]
    try:
        return isinstance(constraints.reduce(_system(items)), constraints.Unsatisfiable)
    except Exception:
        return False


def _by_search(items: list[Item], arch: Any, fuel: int = _FUEL) -> bool:
    constraints = sys.modules["jax.experimental.mosaic.gpu.constraints"]
    inference = sys.modules["jax.experimental.mosaic.gpu.layout_inference"]
    system = _system(items)
    try:
        found, _ = inference.find_assignments_for(list(system.unknowns()), system, fuel=fuel, arch=arch)
    except Exception:  # out of fuel, or a subset that jax does not expect
        return False
    return isinstance(found, constraints.Unsatisfiable)


def _describe(item: Item, context: Any) -> dict[str, Any] | None:
    kind, value, constant = item
    operation = None
    if kind == "constraint":
        operation = getattr(context, "op_for_constraint", {}).get(value)
    variables = [value] if kind == "assignment" else _variables(value)
    candidates = [operation] if operation is not None else []
    candidates += _operations(value if kind == "constraint" else None, variables, context)
    for candidate in candidates:
        entry = _at(candidate, constant if constant is not None else _constant(value), value)
        if entry is not None:
            return entry
    return None


def _at(operation: Any, layout: Any, constraint: Any) -> dict[str, Any] | None:
    with contextlib.suppress(Exception):
        places = frames.of_location(operation.location)
        if places:
            name = str(operation.operation.name) if hasattr(operation, "operation") else str(operation.name)
            asked = layout_name(layout)
            return {"frames": places[::-1], "operation": name, "layout": asked, "text": _text(name, asked, constraint)}
    return None


def _operations(constraint: Any, variables: list[Any], context: Any) -> list[Any]:
    """The operations of variables, those first that most likely made the constraint (jax 0.11 does not say which did).

    Tiles in SMEM are asked for by matrix products, and two variables are tied by an operation that has both.
    """
    known = getattr(context, "value_sites_for_variable", {})
    sites = [[variable.key, *known.get(variable, ())] for variable in variables]
    operations = [[site.operation for site in of if hasattr(site, "operation")] for of in sites]
    every = [operation for of in operations for operation in of]
    first: list[Any] = []
    if constraint is not None and len(operations) > 1:
        first = [operation for operation in operations[0] if all(operation in of for of in operations[1:])]
    elif type(constraint).__name__ == "OneOf":
        first = [operation for operation in every if str(operation.name).endswith(("wgmma", "tcgen05_mma"))]
    return first + every


def _variables(constraint: Any) -> list[Any]:
    found = []
    pending = list(vars(constraint).values())
    while pending:
        value = pending.pop()
        if type(value).__name__ == "Variable" and hasattr(value, "key"):
            found.append(value)
        elif hasattr(value, "expression"):
            pending.append(value.expression)
    return found


def _constant(constraint: Any) -> Any:
    """The constant that a constraint ties its variable to, if any."""
    for value in vars(constraint).values():
        if type(value).__name__ in ("RegisterLayout", "TMEMLayout", "SMEMTransforms"):
            return value
    return None


def layout_name(constant: Any) -> str:
    """A layout as a user names it (``plgpu.Layout.WGMMA``), else jax's own text, shortened."""
    if constant is None:
        return ""
    value = getattr(constant, "value", constant)
    plgpu = sys.modules.get("jax.experimental.pallas.mosaic_gpu")
    for layout in getattr(plgpu, "Layout", ()):
        with contextlib.suppress(Exception):
            if layout.to_mgpu() == value:
                return f"plgpu.Layout.{layout.name}"
    text = str(value)
    if type(value).__name__ == "WGStridedFragLayout":
        return f"plgpu.Layout.WG_STRIDED({tuple(value.shape)}, vec_size={value.vec_size})"
    return text if len(text) <= 120 else f"{type(value).__name__}(...)"


def _text(operation: str, layout: str, value: Any) -> str:
    name = operation.rpartition(".")[2]
    if layout:
        return f"`{name}` asks for the layout {layout}"
    what = {
        "Equals": "needs its values to have the same layout",
        "Relayout": "needs a layout that its operand can take",
    }
    return f"`{name}` {what.get(type(value).__name__, 'limits the layouts that its values can have')}"
