"""What a launch was given, operand by operand, for a fault of lowering: the grid and the specs with their places."""

from __future__ import annotations

import math
import types
from typing import Any

from . import births, know_operands, know_specs

Stack = list[tuple[types.FrameType, dict[str, Any]]]

_MOST = 64
_ROLES = {
    "inputs": ("in_specs",),
    "outputs": ("out_specs",),
    "scratch": ("scratch_shapes", "scratch_types"),
}


def facts(options: dict[str, Any]) -> dict[str, Any]:
    """The fact ``given`` from the options of a launch; empty where it has neither a grid nor specs."""
    spec = options.get("grid_spec")
    grid = getattr(spec, "grid", options.get("grid"))
    found: dict[str, Any] = {}
    if grid is not None and grid != ():
        found["grid"] = [know_specs.dimension(size) for size in (grid if isinstance(grid, (tuple, list)) else (grid,))]
    prefetched = getattr(spec, "num_scalar_prefetch", 0)
    if isinstance(prefetched, int) and prefetched:
        found["prefetched"] = prefetched
    for role, names in _ROLES.items():
        tree = next((getattr(spec, name) for name in names if getattr(spec, name, None) is not None), None)
        if tree is None:
            tree = next((options[name] for name in names if options.get(name) is not None), None)
        specs = [_spec(leaf) for leaf in _leaves(tree)]
        if any(specs):
            found[role] = specs[:_MOST]
    for key, value in (("grid_spec", spec), ("compiler_params", options.get("compiler_params"))):
        if value is not None:
            found[key] = {"kind": type(value).__name__, "frames": births.of(value)}
    mesh = {name: options.get(name, getattr(options.get("mesh"), name, None)) for name in _MESH}
    if named := {name: _plain(value) for name, value in mesh.items() if value not in (None, ())}:
        found["mesh"] = named
    return {"given": found} if found else {}


_MESH = ("grid", "grid_names", "cluster", "cluster_names", "num_threads", "thread_name")


def _plain(value: Any) -> Any:
    """Numbers and names of a mesh as JSON has them."""
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (int, str)) else str(value)


def _leaves(tree: Any) -> list[Any]:
    """The specs of a tree in order; no spec counts as one too."""
    import jax

    if tree is None or type(tree).__name__ == "NoBlockSpec":
        return []
    leaves: list[Any] = jax.tree_util.tree_leaves(tree, is_leaf=lambda leaf: leaf is None)
    return leaves


def _spec(spec: Any) -> dict[str, Any]:
    if spec is None or isinstance(spec, type):
        return {}
    found: dict[str, Any] = {"kind": type(spec).__name__}
    if places := births.of(spec):
        found["frames"] = places
    if getattr(spec, "memory_space", None) is not None:
        found["memory_space"] = know_operands.space(spec)
    block = getattr(spec, "block_shape", None)
    if isinstance(block, (tuple, list)):
        found["block_shape"] = [know_specs.dimension(size) for size in block]
    elif getattr(spec, "shape", None) is not None:
        found |= know_specs.type_of(spec)
    return found


# -- the block that a lowering refused -------------------------------------------------------------------------------


def refused(stack: Stack) -> dict[str, Any] | None:
    """The fact ``refused``: the operand whose block mapping jax's innermost frames were at."""
    for _, names in stack:
        mapping = next((names[name] for name in ("bm", "block_mapping") if _is_mapping(names.get(name))), None)
        if mapping is not None:
            grids = [found for _, outer in stack if hasattr(found := outer.get("grid_mapping"), "block_mappings")]
            return _described(mapping, grids[0] if grids else None)
    return None


def _is_mapping(value: Any) -> bool:
    return type(value).__name__ == "BlockMapping"


def _described(mapping: Any, grid: Any) -> dict[str, Any]:
    array = mapping.array_aval
    dtype = getattr(array, "dtype", None)
    found: dict[str, Any] = {
        "origin": str(mapping.origin),
        "block_shape": [know_specs.dimension(size) for size in mapping.block_shape],
        "array_shape": [know_specs.dimension(size) for size in array.shape],
        "dtype": str(dtype),
        "memory_space": know_operands.space(mapping.block_aval),
    }
    itemsize = getattr(dtype, "itemsize", None)
    if isinstance(itemsize, int):
        found["bytes"] = math.prod(size for size in found["block_shape"] if isinstance(size, int)) * itemsize
    index = next((i for i, each in enumerate(getattr(grid, "block_mappings", ())) if each is mapping), None)
    inputs = getattr(grid, "num_inputs", None)
    if index is not None and isinstance(inputs, int):
        found["role"] = "inputs" if index < inputs else "outputs"
        found["index"] = index if index < inputs else index - inputs
    return found
