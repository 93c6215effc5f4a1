"""What a kernel allocates in shared and tensor memory: the allocations that are alive together where it is most."""

from __future__ import annotations

import math
import re
from typing import Any

from . import compat, frames, internals, know_operands

_KERNELS = ("mpmd_map", "core_map", "pallas_call")
_BARRIER_BYTES = 8
_NUMBERS = re.compile(r"(?P<name>max_smem_bytes|smem_bytes|Requested|limit of)\s*=?\s*(?P<value>\d+)")
TMEM_COLUMNS = 512

Entry = dict[str, Any]


def facts(error: BaseException, program: Any) -> dict[str, Any]:
    """``allocations``, largest first, and the numbers of jax's message, for a fault that speaks of a memory budget."""
    text = str(error)
    lowered = text.lower()
    space = (
        "tmem"
        if "tmem" in lowered or "columns" in lowered
        else "smem"
        if "smem" in lowered or "shared memory" in lowered
        else None
    )
    over_limit = any(word in lowered for word in ("exceed", "ran out", "out of shared"))
    if program is None or space is None or not over_limit:
        return {}
    entries, _ = _most(program, space, "")
    if not entries:
        return {}
    found: dict[str, Any] = {"allocations": sorted(entries, key=lambda entry: -entry["size"])}
    for match in _NUMBERS.finditer(text):
        key = {"max_smem_bytes": "limit_bytes", "smem_bytes": "requested_bytes", "Requested": "requested_columns"}
        found[key.get(match["name"], "limit_columns")] = int(match["value"])
    if space == "tmem":
        found.setdefault("limit_columns", TMEM_COLUMNS)
    return found


def _most(jaxpr: Any, space: str, around: str) -> tuple[list[Entry], int]:
    """The allocations that are alive together at the place of a program where they need most, and how much that is."""
    best: list[Entry] = []
    most = 0
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        own: list[Entry] = []
        if name == "run_scoped":
            inner = next(compat.sub_jaxprs(equation), None)
            places = frames.of_codes(compat.equation_frames(equation))
            scope = "scratch" if around in _KERNELS else "run_scoped"
            for index, var in enumerate(inner.invars if inner is not None else ()):
                entry = _entry(f"{scope} {index}", var.aval, space)
                if entry is not None:
                    own.append({"frames": places, **entry})
        nested = [_most(inner, space, name) for inner in compat.sub_jaxprs(equation)]
        deepest, amount = max(nested, key=lambda pair: pair[1], default=([], 0))
        amount += sum(entry["size"] for entry in own)
        if amount > most:
            best, most = [*own, *deepest], amount
    return best, most


def _entry(what: str, aval: Any, space: str) -> Entry | None:
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or know_operands.space(aval) != space:
        return None
    dimensions = [int(d) for d in shape]
    made = know_operands.allocation_of(aval)
    entry: Entry = {"what": what, "memory_space": space, "dtype": str(dtype), "shape": dimensions}
    if made is not None:
        described = know_operands.describe_allocation(made)
        entry["shape"] = described["shape"] or dimensions
        if described["frames"]:
            entry["frames"] = described["frames"]
    bits = _bits(dtype)
    if space == "tmem":
        layout: Any = getattr(aval, "layout", None)
        try:
            size = int(layout.cols_in_shape(tuple(dimensions), bits))
        except Exception:
            size = dimensions[-1] * bits // 32
        return {**entry, "size": size, "columns": size}
    size = _BARRIER_BYTES * math.prod(dimensions) if bits == 0 else math.prod(dimensions) * bits // 8
    return {**entry, "size": size, "bytes": size}


def _bits(dtype: Any) -> int:
    """The bits of an element; 0 for a barrier."""
    import jax

    try:
        return int(jax.dtypes.itemsize_bits(dtype))
    except Exception:
        pass
    try:
        return internals.itemsize_bits(dtype)
    except Exception:
        itemsize = getattr(dtype, "itemsize", 0)
        return int(itemsize) * 8 if isinstance(itemsize, int) else 0
