"""
## What it does
Finds parts that are taken from a value in registers, `x[:64]` or `x[0]` of a loaded `x`, where its layout does not
allow it.

## Why it is wrong
The elements of a value are spread over the threads of a warpgroup. In a tiled layout whole tiles can be taken out, at
places that are known while the kernel is traced; in the layout of a plain load (`plgpu.Layout.WG_STRIDED`) nothing
can. A part of a ref is loaded instead: `x_ref[:64]`.

## Example
```python
x = x_ref[...]
o_ref[...] = x[:64]
```

## Use instead
```python
o_ref[...] = x_ref[:64]
```

## Fix safety
Reading the part from the ref is safe where the kernel does not store to it, and suggested otherwise.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`FragmentedArray.__getitem__` and `__setitem__` in `jax/experimental/mosaic/gpu/fragmented_array.py`;
`_vector_extract_op_lowering_rule` and others in `jax/experimental/mosaic/gpu/dialect_lowering.py`; layout inference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_layouts import conflict, inferred
from pallas_lsp.rules.shared.gpu_operands import MGPU
from pallas_lsp.rules.shared.gpu_rewrites import loaded_with_layout
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.ref_loads import operand, read_parts
from pallas_lsp.rules.shared.replacements import rank_of
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("layouts", "primitives")
SPECIFICITY = 31
_ARRAY = f"{MGPU}fragmented_array.py"
SITES = (
    (_ARRAY, "FragmentedArray.__getitem__"),
    (_ARRAY, "FragmentedArray.__setitem__"),
    (f"{MGPU}dialect_lowering.py", "_vector_extract_op_lowering_rule"),
    (f"{MGPU}dialect_lowering.py", "_vector_extract_strided_slice_op_lowering_rule"),
    (f"{MGPU}dialect_lowering.py", "_vector_insert_strided_slice_op_lowering_rule"),
    (f"{MGPU}layout_inference.py", "_vector_extract_constraint_system"),
)
_SLICES = ("extract_strided_slice", "extract")


def judge(fault: Fault, context: Context) -> Finding | None:
    parts = conflict(fault, context) if inferred(fault) else []
    by_layout = bool(parts) and parts[-1].operation in _SLICES and len({p.layout for p in parts if p.layout}) < 2
    raised = raised_in(fault, _ARRAY, "__getitem__", "__setitem__") or any(
        raised_in(fault, file, function) for file, function in SITES[2:]
    )
    if not raised and not by_layout:
        return None
    place = context.locate(fault)
    if by_layout and parts[-1].spot is not None:
        place = parts[-1].spot.location
    syntax, node = context.syntax(place.path), context.node(place)
    spot = Spot(place.path, syntax, _whole(syntax, node)) if syntax and isinstance(node, ast.expr) else None
    place = spot.location if spot is not None else place
    source = short(context.source(place), 50)
    fixes = list(_fixes(context, fault, spot)) if spot is not None else []
    read = next((f.title.partition("`")[2].partition("`")[0] for f in fixes if f.title.startswith("Read `")), None)
    if parts and any(p.layout for p in parts):
        asked = next(p for p in parts if p.layout)
        text = (
            f"`{source}` takes a part of a value in the layout {asked.layout}, which can only be taken apart in whole "
            "tiles: 64 rows and 8 columns."
        )
    elif "tile" in fault.message.lower() and "tiled layouts" not in fault.message:
        text = f"`{source}` takes a part of a value in registers that is no whole number of tiles of its layout."
    else:
        text = (
            f"`{source}` takes a part of a value in registers, whose elements are spread over the threads as a plain "
            "load spreads them: such a value cannot be taken apart."
        )
    if read is not None:
        text += f" Read `{read}` from the ref."
    return finding(__name__, fault, context, place, text, (), fixes)


def _whole(syntax: Syntax, node: ast.expr) -> ast.expr:
    """The slice that starts where the load does: ``x_ref[...][:64]`` for ``x_ref[...]``."""
    parent = syntax.parent(node)
    while isinstance(parent, ast.Subscript) and parent.value is node:
        node, parent = parent, syntax.parent(parent)
    return node


def _fixes(context: Context, fault: Fault, spot: Spot) -> Iterator[Fix]:
    rank = rank_of(fault.equation.inputs[0]) if fault.equation is not None and fault.equation.inputs else 2
    fix = read_parts(spot, rank)
    if fix is not None:
        yield fix
    if not _takes_one(spot.node):
        yield from loaded_with_layout(context, spot, operand(spot.syntax, spot.node))


def _takes_one(node: ast.AST) -> bool:
    """Whether a part is a single row, which is no whole number of tiles of any layout."""
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(not isinstance(p, ast.Slice) and not (isinstance(p, ast.Constant) and p.value is ...) for p in parts)
