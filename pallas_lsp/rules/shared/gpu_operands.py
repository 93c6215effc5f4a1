"""The refs that a Mosaic GPU operation works on: their types, their allocations, and the arguments that name them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pallas_lsp.model import Fault, Location, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.launches import born
from pallas_lsp.rules.shared.operand_refs import notation
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.syntax import Syntax

PLGPU = "jax.experimental.pallas.mosaic_gpu"
CORE = "jax/_src/pallas/mosaic_gpu/core.py"
PRIMITIVES = "jax/_src/pallas/mosaic_gpu/primitives.py"
LOWERING = "jax/_src/pallas/mosaic_gpu/lowering.py"
PIPELINE = "jax/_src/pallas/mosaic_gpu/pipeline.py"
MGPU = "jax/experimental/mosaic/gpu/"
VERIFIER = "_lower_as_gpu_kernel"
"""The function of jax that runs MLIR's verifiers: their messages come from no Python line."""

PARAMETERS: dict[str, tuple[str, ...]] = {
    "wgmma": ("acc", "a", "b"),
    "tcgen05_mma": ("acc", "a", "b", "barrier", "a_scale", "b_scale", "a_sparse_metadata"),
    "tcgen05_commit_arrive": ("barrier", "collective_axis"),
    "copy_gmem_to_smem": ("src", "dst", "barrier"),
    "copy_smem_to_gmem": ("src", "dst", "predicate"),
    "async_prefetch": ("ref",),
    "async_load_tmem": ("ref",),
    "async_store_tmem": ("ref", "value"),
    "async_copy_smem_to_tmem": ("smem_ref", "tmem_ref"),
    "async_copy_scales_to_tmem": ("smem_ref", "tmem_ref"),
    "async_copy_sparse_metadata_to_tmem": ("smem_ref", "tmem_ref"),
    "barrier_wait": ("barrier",),
    "barrier_arrive": ("barrier",),
    "set_max_registers": ("n", "action"),
    "transpose_ref": ("ref", "permutation"),
    "layout_cast": ("x", "new_layout"),
    "load": ("src", "idx"),
    "run_scoped": ("f",),
}
_RENAMED = {"smem_ref": ("smem_source",), "tmem_ref": ("tmem_ref",), "ref": ("barrier", "src", "_src")}
_BITS = {"bool": 8, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}


@dataclass(frozen=True)
class Allocation:
    """What the user allocated: ``plgpu.SMEM(...)``, ``plgpu.ACC(...)``, ``plgpu.Barrier(...)``."""

    kind: str
    shape: tuple[int, ...]
    dtype: str
    space: str
    facts: Mapping[str, Any]

    @property
    def tiling(self) -> tuple[int, ...] | None:
        given = self.facts.get("tiling")
        return tuple(given) if given else None

    @property
    def swizzle(self) -> int | None:
        given = self.facts.get("swizzle")
        return int(given) if given else None

    def spot(self, context: Context) -> Spot | None:
        """The expression that made it, where it is the user's own."""
        return born(context, self.facts.get("frames"))

    def location(self, context: Context) -> Location | None:
        spot = self.spot(context)
        return narrowed(spot.location, context) if spot is not None else None


@dataclass(frozen=True)
class Operand:
    """A ref as an operation sees it: ``shape`` is that of the slice or view that it was given."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    space: str
    view: tuple[str, ...]
    allocation: Allocation | None
    slices: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    """For each slice in turn, for each dimension: ``start`` (None where traced), ``size`` (absent for an index)."""

    @property
    def type(self) -> str:
        return notation(self.dtype, self.shape or ())

    @property
    def bits(self) -> int:
        return bits(self.dtype)

    @property
    def transposed(self) -> bool:
        return "TransposeTransform" in self.view or "TransposeRef" in self.view

    def related(self, context: Context, message: str) -> tuple[Related, ...]:
        place = self.allocation.location(context) if self.allocation is not None else None
        return (Related(place, message),) if place is not None else ()


def operands(fault: Fault) -> dict[str, Operand]:
    """The operands of the operation at fault by jax's names for them."""
    found = {}
    for entry in fault.facts.get("operands", ()):
        if isinstance(entry, Mapping) and entry.get("name"):
            found[str(entry["name"])] = _operand(
                entry if "allocation" in entry else {**entry, **_started(fault, entry)}
            )
    return found


def _started(fault: Fault, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The allocation of an operand that ``pl.run_state`` made a ref of, where only one of its refs has this type."""
    alike = [
        each
        for each in fault.facts.get("ref_types", ())
        if isinstance(each, Mapping) and all(each.get(key) == entry.get(key) for key in ("shape", "dtype"))
    ]
    return {"allocation": alike[0]} if len(alike) == 1 and entry.get("memory_space") == "regs" else {}


def _operand(entry: Mapping[str, Any]) -> Operand:
    made = entry.get("allocation")
    return Operand(
        str(entry["name"]),
        _shape(entry.get("shape")),
        str(entry.get("dtype", "")),
        str(entry.get("memory_space", "")) if "memory_space" in entry else "value",
        tuple(entry.get("view") or ()),
        allocation(made) if isinstance(made, Mapping) else None,
        tuple(tuple(each) for each in entry.get("slices") or ()),
    )


def allocation(made: Mapping[str, Any]) -> Allocation:
    return Allocation(
        str(made.get("kind", "")),
        _shape(made.get("shape")) or (),
        str(made.get("dtype", "")),
        str(made.get("memory_space", "")),
        made,
    )


def _shape(given: Any) -> tuple[int, ...] | None:
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(d, int) for d in given):
        return None
    return tuple(given)


def bits(dtype: str) -> int:
    """How many bits an element of a dtype takes; 0 where the name does not tell."""
    if dtype in _BITS:
        return _BITS[dtype]
    if dtype.startswith("float8"):
        return 8
    digits = dtype.lstrip("abcdefghijklmnopqrstuvwxyz").partition("_")[0]
    return int(digits) if digits.isdigit() else 0


def shape_text(shape: Sequence[int] | None) -> str:
    if shape is None:
        return "an unknown shape"
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


# -- the call --------------------------------------------------------------------------------------------------------


def call_spot(context: Context, fault: Fault, *names: str) -> Spot | None:
    """The call of a Pallas function (one of ``names``, else any known) that the fault stands in."""
    place = context.locate(fault)
    syntax = context.syntax(place.path)
    node = syntax.node_at(place.range) if syntax is not None else None
    if syntax is None or node is None:
        return None
    wanted = names or tuple(PARAMETERS)
    if isinstance(node, ast.stmt):
        inside = [n for n in ast.walk(node) if isinstance(n, ast.Call) and called(syntax, n) in wanted]
        return Spot(place.path, syntax, inside[0]) if len(inside) == 1 else None
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        if isinstance(current, ast.Call) and called(syntax, current) in wanted:
            return Spot(place.path, syntax, current)
        current = syntax.parent(current)
    return None


def called(syntax: Syntax, call: ast.Call) -> str:
    """The last part of the name of what a call calls."""
    name = syntax.called(call)
    if name is None:
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return name.rpartition(".")[2]


def argument(context: Context, fault: Fault, name: str, *functions: str) -> Spot | None:
    """The expression given for a parameter of the Pallas function that was called."""
    spot = call_spot(context, fault, *functions)
    if spot is None or not isinstance(spot.node, ast.Call):
        return None
    names = PARAMETERS.get(called(spot.syntax, spot.node), ())
    given = spot.syntax.arguments(spot.node)
    found = given.get(names.index(name) if name in names else None, name)
    for other in _RENAMED.get(name, ()):
        found = found or given.keywords.get(other)
    return spot.at(found) if found is not None else None


def place(context: Context, fault: Fault, *names: str) -> Location:
    """The place of the first of some arguments that is written; else that of the fault."""
    for name in names:
        spot = argument(context, fault, name)
        if spot is not None:
            return narrowed(spot.location, context)
    return narrowed(context.locate(fault), context)


def quoted(context: Context, fault: Fault, name: str, default: str) -> str:
    """An argument as it is written, in backquotes."""
    spot = argument(context, fault, name)
    return f"`{short(spot.source, 40)}`" if spot is not None else default
