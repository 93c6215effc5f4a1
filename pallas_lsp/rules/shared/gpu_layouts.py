"""Layouts of values in registers: what jax's layout inference found to disagree, in words, and reductions in source."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pallas_lsp.model import Fault
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.launches import born
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.syntax import Function, Syntax

INFERENCE = "jax/experimental/mosaic/gpu/layout_inference.py"
_TILES = re.compile(r"C\(TileTransform\(tiling=\((?P<tiling>[\d, ]+)\)[^)]*\), (?P<swizzle>\w+)\)")
_OPERATIONS = {
    "addf": "an addition",
    "addi": "an addition",
    "subf": "a subtraction",
    "subi": "a subtraction",
    "mulf": "a product",
    "muli": "a product",
    "divf": "a division",
    "maximumf": "a maximum",
    "minimumf": "a minimum",
    "select": "a choice",
    "cmpf": "a comparison",
    "cmpi": "a comparison",
    "wgmma": "`wgmma`",
    "layout_cast": "`layout_cast`",
    "vector_load": "a load",
    "vector_store": "a store",
    "slice_smem": "an allocation in SMEM",
    "async_load": "a copy into SMEM",
    "async_store": "a copy out of SMEM",
    "subview": "a slice of a ref",
    "multi_reduction": "a reduction",
    "extract_strided_slice": "a slice of a value",
    "extract": "an element of a value",
    "broadcast_in_dim": "a broadcast",
    "vector_concat": "a concatenation",
    "async_load_tmem": "a load of TMEM",
    "async_store_tmem": "a store to TMEM",
    "tcgen05_mma": "`tcgen05_mma`",
    "for": "a loop",
    "while": "a loop",
    "if": "a branch",
    "yield": "the result of a loop or branch",
    "print_layout": "`print_layout`",
    "broadcasted_iota": "an iota",
    "custom_primitive": "`inline_mgpu`",
}


@dataclass(frozen=True)
class Part:
    """One of the operations that disagree.  ``layout``: what it asks for, empty where it only ties values together."""

    operation: str
    layout: str
    spot: Spot | None

    @property
    def what(self) -> str:
        return _OPERATIONS.get(self.operation, f"`{self.operation}`")

    @property
    def line(self) -> str:
        return f" (line {self.spot.location.range.start.line + 1})" if self.spot is not None else ""


def conflict(fault: Fault, context: Context) -> list[Part]:
    """The irreducible core of a layout conflict; empty where there is none."""
    found = []
    for entry in fault.facts.get("conflict") or ():
        if isinstance(entry, Mapping):
            operation = str(entry.get("operation", "")).rpartition(".")[2]
            found.append(Part(operation, layout_text(entry.get("layout")), born(context, entry.get("frames"))))
    return found


def layout_text(layout: Any) -> str:
    """A layout as a kernel writer names it."""
    text = str(layout or "")
    match = _TILES.search(text)
    if match is None:
        return text
    swizzle = match["swizzle"]
    return f"tiles of ({match['tiling']}){f' with a swizzle of {swizzle} bytes' if swizzle.isdigit() else ''}"


def inferred(fault: Fault) -> bool:
    """Whether jax's layout inference found no layouts."""
    return fault.site is not None and fault.site.file == INFERENCE


THREADS = 128
_IOTAS = ("arange", "iota", "broadcasted_iota", "linspace", "eye", "tri", "tril", "triu", "indices")


def made_iota(spot: Spot | None) -> bool:
    """Whether an expression asks for counting numbers itself, and not for something that needs them inside."""
    if spot is None or not isinstance(spot.node, ast.Call):
        return False
    return (spot.syntax.called(spot.node) or "").rpartition(".")[2] in _IOTAS


def result_shape(fault: Fault) -> tuple[int, ...] | None:
    """The shape of what the operation at fault gives."""
    inside = (
        fault.equation.outputs[0].partition("[")[2].rstrip("]") if fault.equation and fault.equation.outputs else ""
    )
    return tuple(int(p) for p in inside.split(",")) if inside else None


def strided_layouts(layout: str, shape: tuple[int, ...]) -> list[str]:
    """The strided layouts of a shape with the longest possible vectors, and with pairs."""
    longest = next((v for v in (4, 2, 1) if math.prod(shape) % (THREADS * v) == 0), None)
    vectors = list(dict.fromkeys((longest, min(longest, 2)))) if longest else []
    return [
        f"{layout}.WG_STRIDED(({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''}), vec_size={vector})"
        for vector in vectors
    ]


# -- reductions in the source -----------------------------------------------------------------------------------------

REDUCTIONS = frozenset({"sum", "max", "min", "mean", "prod", "var", "std", "any", "all", "logsumexp", "amax", "amin"})


def reduction_of(syntax: Syntax, node: ast.AST) -> ast.Call | None:
    """The reduction that a node is, or that stands around it in the same expression."""
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        if is_reduction(syntax, current):
            assert isinstance(current, ast.Call)
            return current
        current = syntax.parent(current)
    return None


def is_reduction(syntax: Syntax, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = syntax.called(node) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    return name.rpartition(".")[2] in REDUCTIONS and (name.startswith("jax") or isinstance(node.func, ast.Attribute))


def keepdims(call: ast.Call) -> ast.keyword | None:
    """``keepdims=True`` of a reduction."""
    found = next((k for k in call.keywords if k.arg == "keepdims"), None)
    return found if found is not None and isinstance(found.value, ast.Constant) and found.value.value is True else None


def kept_reductions(syntax: Syntax, function: Function) -> Iterator[ast.Call]:
    """The reductions with ``keepdims=True`` in a function, nested functions included."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and is_reduction(syntax, node) and keepdims(node) is not None:
            yield node
