"""What the names in the user's line stood for when an exception came, and the types that did not go together."""

from __future__ import annotations

import types
from typing import Any

from . import compat, frames

Stack = list[tuple[types.FrameType, dict[str, Any]]]

_MOST = 80
_MISMATCHES = {
    ("jax/_src/state/primitives.py", "_swap_abstract_eval"): ("expected_out_ty", "val_aval"),
    ("jax/_src/state/primitives.py", "_addupdate_abstract_eval"): ("expected_out_ty", "val_aval"),
    ("jax/_src/pallas/primitives.py", "_load_abstract_eval"): ("ref_aval", "mask_aval"),
}
_VALUES = {
    ("jax/_src/core.py", "__bool__"): "self",
    ("jax/_src/core.py", "__int__"): "self",
    ("jax/_src/core.py", "__index__"): "self",
    ("jax/_src/core.py", "__float__"): "self",
    ("jax/_src/core.py", "__complex__"): "self",
    ("jax/_src/core.py", "__array__"): "self",
    ("jax/_src/core.py", "__iter__"): "self",
    ("jax/_src/core.py", "__len__"): "self",
    ("jax/_src/core.py", "concrete_or_error"): "val",
    ("jax/_src/numpy/array_methods.py", "op"): "self",
    ("jax/_src/numpy/array_methods.py", "meth"): "self",
    ("jax/_src/state/primitives.py", "get_ref_and_transforms"): "ref_or_view",
    ("jax/_src/lax/control_flow/conditionals.py", "cond"): "pred",
}


def collect(stack: Stack, facts: dict[str, Any]) -> None:
    """``facts["names"]``, ``facts["value"]`` and ``facts["mismatch"]``."""
    for frame, names in stack:
        code = frame.f_code
        file = frames.jax_file(code.co_filename)
        if file is None:
            if frames.origin(code.co_filename) == "workspace":
                facts["names"] = _names(frame, names)
                return
            continue
        where = (file, code.co_name)
        pair = _MISMATCHES.get(where)
        if pair is not None and all(name in names for name in pair):
            facts.setdefault("mismatch", {"ref": kind(names[pair[0]]), "value": kind(names[pair[1]])})
        name = _VALUES.get(where)
        if name is not None and names.get(name) is not None:
            facts.setdefault("value", kind(names[name]))


def _names(frame: types.FrameType, names: dict[str, Any]) -> dict[str, Any]:
    """The names that the frame's code reads, as far as they stand for arrays, refs or plain values."""
    found: dict[str, Any] = {}
    scope = {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals} | names
    for name, value in list(scope.items())[:_MOST]:
        described = kind(value)
        if described["kind"] != "other":
            found[name] = described
    return found


def kind(value: Any) -> dict[str, Any]:
    """``ref``, ``refs`` (a sequence of them), ``traced`` (a value of the program), ``array`` (a concrete one), ..."""
    aval = getattr(value, "aval", value)
    if compat.is_ref(aval) or type(value).__name__ == "TransformedRef":
        return {"kind": "ref", **_type(value if type(value).__name__ == "TransformedRef" else aval)}
    if compat.is_tracer(value):
        return {"kind": "traced", **_type(aval)}
    if isinstance(value, (tuple, list)) and value and all(compat.is_ref(getattr(v, "aval", None)) for v in value):
        return {"kind": "refs", "shape": None, "dtype": ""}
    if isinstance(value, (types.ModuleType, type)):
        return {"kind": "other"}
    if isinstance(value, (bool, int, float)):
        return {"kind": "number", "text": repr(value)[:40]}
    if hasattr(value, "shape") and hasattr(value, "dtype") and not callable(value):
        made = "array" if hasattr(value, "__array__") or hasattr(value, "__jax_array__") else "type"
        return {"kind": made, "numpy": type(value).__module__ == "numpy", **_type(value)}
    return {"kind": "other"}


def _type(value: Any) -> dict[str, Any]:
    try:
        shape, dtype = value.shape, value.dtype
    except Exception:
        return {"shape": None, "dtype": ""}
    return {
        "shape": [int(d) if isinstance(d, int) else str(d) for d in shape] if isinstance(shape, tuple) else None,
        "dtype": str(getattr(dtype, "name", dtype)),
    }
