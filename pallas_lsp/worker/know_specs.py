"""What a launch was made of when an exception came from it: grid, types, specs, scratch, and the spec jax looked at.

The places are named as jax names them: the path of a leaf in the tree of ``in_specs``, ``out_specs`` and so on, so that
the source can be followed along it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from . import births, compat, frames

Stack = list[tuple[types.FrameType, dict[str, Any]]]

_MOST = 64
_PALLAS_CALL = "jax/_src/pallas/pallas_call.py"
_CORE = "jax/_src/pallas/core.py"
_MPMD = "jax/_src/pallas/mpmd.py"
_MOSAIC_GPU = "jax/_src/pallas/mosaic_gpu/core.py"


def collect(stack: Stack, facts: dict[str, Any]) -> None:
    """``facts["launch"]`` and ``facts["spec"]``."""
    found: dict[str, Any] = {}
    for file, function, names in _jax_frames(stack):
        reader = _READERS.get((file, function))
        if reader is not None:
            for key, value in reader(names).items():
                found.setdefault(key, value)
        if (file, function) == (_CORE, "to_block_mapping") and "spec" not in facts:
            facts["spec"] = _spec(names)
        if function in ("wrapped", "pallas_call", "kernel") and file in (_PALLAS_CALL, _MOSAIC_GPU):
            break
    if found:
        facts["launch"] = found


def _jax_frames(stack: Stack) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for frame, names in stack:
        file = frames.jax_file(frame.f_code.co_filename)
        if file is not None:
            yield file, frame.f_code.co_name, names


# -- readers, one for each function of jax that holds parts of a launch ----------------------------------------------


def _of_pallas_call(names: dict[str, Any]) -> dict[str, Any]:
    """``pallas_call`` and ``GridSpec.__init__``: arguments that were not accepted."""
    found = {}
    for key in ("grid", "in_specs", "out_specs", "scratch_shapes", "out_shape", "input_output_aliases"):
        if key in names:
            found[f"given_{key}"] = given(names[key])
    return found


def _of_wrapped(names: dict[str, Any]) -> dict[str, Any]:
    """``wrapped`` inside ``_pallas_call``: the launch with its arguments."""
    found = _of_grid_spec(names.get("grid_spec"))
    if "flat_in_avals" in names:
        found["inputs"] = [type_of(aval) for aval in names["flat_in_avals"][:_MOST]]
    out = names.get("flat_out_avals")
    if out is not None:
        found["outputs"] = [type_of(aval) for aval in out[:_MOST]]
    elif "flat_out_shapes" in names:
        found["outputs"] = [type_of(value) for value in names["flat_out_shapes"][:_MOST]]
    for key in ("in_tree", "out_tree"):
        if key in names:
            found[key] = _paths(names[key])
    aliases = names.get("input_output_aliases")
    if aliases is not None:
        found["given_input_output_aliases"] = given(aliases)
    for key in ("i_idx", "o_idx"):
        if key in names:
            found[f"alias_{key[0]}"] = names[key] if isinstance(names[key], int) else repr(names[key])
    return found


def _of_grid_spec(spec: Any) -> dict[str, Any]:
    if spec is None:
        return {}
    found: dict[str, Any] = {
        "grid": [dimension(d) for d in spec.grid],
        "scalar_prefetch": getattr(spec, "num_scalar_prefetch", 0),
        "in_specs": _spec_leaves(spec.in_specs),
        "out_specs": _spec_leaves(spec.out_specs),
        "scratch": [_scratch(path, value) for path, value in _leaves(spec.scratch_shapes)],
        "grid_spec": type(spec).__name__,
        "frames": births.of(spec),
    }
    return found


def _of_mapping(names: dict[str, Any]) -> dict[str, Any]:
    return _of_grid_spec(names.get("grid_spec"))


def _of_mpmd(names: dict[str, Any]) -> dict[str, Any]:
    """``_mpmd_map`` and ``wrapper`` inside it: ``pl.kernel``."""
    found: dict[str, Any] = {}
    if "flat_avals" in names:
        found["inputs"] = [type_of(aval) for aval in names["flat_avals"][:_MOST]]
    if names.get("flat_out_avals") is not None:
        found["outputs"] = [type_of(aval) for aval in names["flat_out_avals"][:_MOST]]
    if "out_types" in names:
        found["given_out_type"] = given(names["out_types"])
    if "scratch_types" in names:
        found["scratch"] = [_scratch(path, value) for path, value in _leaves(names["scratch_types"])]
    return found


def _of_gpu_kernel(names: dict[str, Any]) -> dict[str, Any]:
    """``kernel`` of Mosaic GPU and ``wrapper`` inside it."""
    import jax

    found: dict[str, Any] = {}
    if "operands" in names:
        operands = jax.tree_util.tree_leaves(names["operands"])
        found["inputs"] = [type_of(getattr(value, "aval", value)) for value in operands[:_MOST]]
    if "out_type" in names:
        leaves = _leaves(names["out_type"])
        found["outputs"] = [type_of(value) for _, value in leaves]
        found["given_out_type"] = given(names["out_type"])
    if "scratch_types" in names:
        found["scratch"] = [_scratch(path, value) for path, value in _leaves(names["scratch_types"])]
        found["scratch_named"] = isinstance(names["scratch_types"], dict)
    return found


_READERS: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    (_PALLAS_CALL, "pallas_call"): _of_pallas_call,
    (_CORE, "__init__"): _of_pallas_call,
    (_PALLAS_CALL, "wrapped"): _of_wrapped,
    (_CORE, "get_grid_mapping"): _of_mapping,
    (_MPMD, "wrapper"): _of_mpmd,
    (_MPMD, "_mpmd_map"): _of_mpmd,
    (_MOSAIC_GPU, "kernel"): _of_gpu_kernel,
    (_MOSAIC_GPU, "wrapper"): _of_gpu_kernel,
}


# -- parts -----------------------------------------------------------------------------------------------------------


def _spec(names: dict[str, Any]) -> dict[str, Any]:
    """The BlockSpec that ``to_block_mapping`` was working on."""
    spec = names.get("self")
    found = {
        "origin": str(names.get("origin", "")),
        "array": type_of(names.get("array_aval")),
        **_block(spec),
        "frames": births.of(spec),
        "grid": len(names.get("grid") or ()),
        "index_map_arguments": len(names.get("index_map_avals") or ()),
    }
    results = names.get("unflat_avals")
    if isinstance(results, (tuple, list)):
        found["results"] = [_result(value) for value in results]
    return found


def _result(value: Any) -> dict[str, Any]:
    return {"text": compat.notation(value), **type_of(value), "kind": type(value).__name__}


def _block(spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"block_shape": None}
    shape = getattr(spec, "block_shape", None)
    if callable(shape):
        found["block_shape"] = "function"
    elif isinstance(shape, (tuple, list)):
        found["block_shape"] = [dimension(d) for d in shape]
    elif shape is not None:
        found["block_shape"] = f"{type(shape).__name__} {shape!r}"[:80]
    index_map = getattr(spec, "index_map", None)
    function = getattr(index_map, "index_map", index_map)
    code = getattr(function, "__code__", None)
    if code is not None:
        found["index_map"] = frames.function_fact(code)
    elif function is not None:
        found["index_map"] = {"repr": repr(function)[:80], "origin": None}
    return found


def _spec_leaves(tree: Any) -> list[dict[str, Any]] | None:
    """The specs of a tree with their paths; None where there are none."""
    if type(tree).__name__ == "NoBlockSpec":
        return None
    return [{"path": path, **_block(spec), "frames": births.of(spec)} for path, spec in _leaves(tree)]


def _scratch(path: str, value: Any) -> dict[str, Any]:
    space = getattr(value, "memory_space", None)
    return {
        "path": path,
        "kind": type(value).__name__,
        **type_of(value),
        "memory_space": str(getattr(space, "value", space) or "").lower(),
        "frames": births.of(value),
    }


def _leaves(tree: Any) -> list[tuple[str, Any]]:
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves[:_MOST]]


def _paths(tree: Any) -> list[str]:
    """The paths of a tree's leaves."""
    return [path for path, _ in _leaves(tree.unflatten(list(range(tree.num_leaves))))]


def type_of(aval: Any) -> dict[str, Any]:
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    return {
        "shape": [dimension(d) for d in shape] if isinstance(shape, (tuple, list)) else None,
        "dtype": str(getattr(dtype, "name", dtype)) if dtype is not None else "",
    }


def dimension(dim: Any) -> int | str | None:
    """A dimension as a number where it is one, else as the text that a user would write."""
    if dim is None or (isinstance(dim, int) and not isinstance(dim, bool)):
        return dim
    size = getattr(dim, "block_size", None)
    if isinstance(size, int):
        return size if type(dim).__name__ == "Blocked" else f"{type(dim).__name__}({size})"
    return compat.notation(dim) if compat.is_tracer(dim) else f"{dim!r}"[:60]


def given(value: Any) -> dict[str, Any]:
    """Something that a user passed, with the kinds of its parts."""
    found: dict[str, Any] = {"kind": type(value).__name__, "text": _short(value)}
    if isinstance(value, (tuple, list)):
        found["items"] = [{"kind": type(item).__name__, "text": _short(item)} for item in value[:_MOST]]
    elif isinstance(value, dict):
        found["items"] = [
            {"key": key if isinstance(key, int) else _short(key), "kind": type(item).__name__, "text": _short(item)}
            for key, item in list(value.items())[:_MOST]
        ]
    return found


def _short(value: Any) -> str:
    text = compat.notation(value) if compat.is_tracer(value) else repr(value)
    return text if len(text) <= 80 else f"{type(value).__name__}(...)"
