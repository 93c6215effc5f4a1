"""
## What it does
Finds slices of tiled refs in SMEM, and slices in GMEM that are copied to or from them, which do not start and end on
the edges of tiles.

## Why it is wrong
A ref with `plgpu.TilingTransform((8, 64))` lies in shared memory tile by tile. A slice has to take whole tiles: its
start and its size have to be multiples of 8 rows and 64 columns. Where the start is only known when the kernel runs,
jax has to see from the expression that it is a multiple (`i * 64`), or be told with `pl.multiple_of(start, 64)`.

## Example
```python
# x_smem is tiled by (8, 64)
plgpu.copy_gmem_to_smem(x_gmem.at[:, pl.ds(32, 128)], x_smem, barrier)
```

## Use instead
```python
plgpu.copy_gmem_to_smem(x_gmem.at[:, pl.ds(64, 128)], x_smem, barrier)
```

## Fix safety
Moving a slice to the edge of a tile takes other elements, so it is a suggestion. `pl.multiple_of` is a promise that
jax does not check.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12 (jax 0.10 lets some of them pass and reads wrong elements).

## Source
`UntilingTransform.commute_ndindexer` and `UnswizzleRef.commute_ndindexer` in `jax/_src/pallas/mosaic_gpu/core.py`;
`tile_offset` and `_memref_subview_op_lowering_rule` in `jax/experimental/mosaic/gpu/dialect_lowering.py`; layout
inference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_copies import copy_of
from pallas_lsp.rules.shared.gpu_operands import CORE, MGPU, Operand, argument, operands
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("refs", "SMEM and TMEM")
SPECIFICITY = 53
SITES = (
    (CORE, "UntilingTransform.commute_ndindexer"),
    (CORE, "UnswizzleRef.commute_ndindexer"),
    (f"{MGPU}dialect_lowering.py", "tile_offset"),
    (f"{MGPU}dialect_lowering.py", "_memref_subview_op_lowering_rule"),
    (f"{MGPU}launch_context.py", "TileTransform.transform_shape"),
    (f"{MGPU}layout_inference.py", "diagnose_unsatisfiable_system"),
    (f"{MGPU}layout_inference.py", "infer_layout"),
    (f"{MGPU}layout_inference.py", "_check_unsatisfiable_divisibility_constraints"),
)
_INFERENCE = "layout_inference.py"


@dataclass(frozen=True)
class _Wrong:
    operand: Operand
    dimension: int
    start: int | None
    size: int
    tile: int


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.site is None or not _raised(fault):
        return None
    wrong = next(_unaligned(fault), None)
    if wrong is None:
        return None
    base = argument(context, fault, wrong.operand.name) or _indexed(context, fault)
    index = _index(base, wrong.dimension) if base is not None else None
    marked = index or base
    place = marked.location if marked is not None else context.locate(fault)
    source = short(context.source(place), 50)
    what = "rows" if len(wrong.operand.slices[-1]) - wrong.dimension == 2 else "columns"
    if wrong.start is None:
        text = (
            f"`{source}` starts at a place that only the running kernel knows, and jax cannot tell that it is a "
            f"multiple of {wrong.tile}: the ref in SMEM is tiled, and a slice has to start on a tile, every "
            f"{wrong.tile} {what}."
        )
    elif wrong.start % wrong.tile:
        text = (
            f"`{source}` starts at {wrong.start}, in the middle of a tile: the ref in SMEM is tiled, and a slice has "
            f"to start at a multiple of {wrong.tile} {what}."
        )
    else:
        text = (
            f"`{source}` takes {wrong.size} {what}, which are no whole tiles: the ref in SMEM is tiled by "
            f"{wrong.tile} {what}."
        )
    tiled = next((o for o in operands(fault).values() if o.allocation is not None and o.allocation.tiling), None)
    related = (
        tiled.related(context, f"It is tiled by {tiled.allocation.tiling} here.")
        if tiled is not None and (tiled.allocation is not None)
        else ()
    )
    return finding(__name__, fault, context, place, text, related, _fixes(index, wrong))


def _raised(fault: Fault) -> bool:
    assert fault.site is not None
    return (
        raised_in(fault, CORE, "commute_ndindexer")
        or raised_in(fault, f"{MGPU}dialect_lowering.py", "tile_offset", "_memref_subview_op_lowering_rule")
        or raised_in(fault, f"{MGPU}launch_context.py", "transform_shape")
        or fault.site.file == f"{MGPU}{_INFERENCE}"
    )


def _unaligned(fault: Fault) -> Iterator[_Wrong]:
    """The slices of the operation at fault that are not on tiles; for a copy, those of both sides."""
    copy = copy_of(fault)
    found = list(operands(fault).values())
    refs = [copy.smem, copy.gmem] if copy is not None else [o for o in found if o.space == "smem"]
    tiling = next((o.allocation.tiling for o in refs if o.allocation is not None and o.allocation.tiling), None)
    if tiling is None:
        return
    unknown: list[_Wrong] = []
    for operand in refs:
        for indices in operand.slices[-1:]:
            first = len(indices) - len(tiling)
            for dimension, (index, tile) in enumerate(
                zip(indices[max(first, 0) :], tiling, strict=False), max(first, 0)
            ):
                start, size = index.get("start"), index.get("size")
                if size is None:
                    continue
                wrong = _Wrong(operand, dimension, start, int(size), tile)
                if start is None:
                    unknown.append(wrong)
                elif start % tile or size % tile:
                    yield wrong
    yield from unknown


def _indexed(context: Context, fault: Fault) -> Spot | None:
    """A ref that is read or stored with an index."""
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    return Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.Subscript) else None


def _index(base: Spot, dimension: int) -> Spot | None:
    """The part of ``ref.at[...]`` for one dimension."""
    node: ast.expr | None = base.node
    if isinstance(node, ast.Name):
        value = base.syntax.value(node)
        node = value if isinstance(value, ast.expr) else None
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(isinstance(p, ast.Constant) and p.value is ... for p in parts) or dimension >= len(parts):
        return None
    return base.at(parts[dimension])


def _fixes(index: Spot | None, wrong: _Wrong) -> Iterator[Fix | None]:
    if index is None:
        return
    start, size = _bounds(index)
    if start is None:
        return
    if wrong.start is None:
        edits = Editor(index.path, index.syntax)
        promise = edits.spell("jax.experimental.pallas.multiple_of", start, ("jax.experimental.pallas", "pl"))
        if promise is not None:
            edits.replace(start, f"{promise}({index.syntax.source(start)}, {wrong.tile})")
            yield suggested(f"Promise that it is a multiple of {wrong.tile}", edits)
        return
    if wrong.start % wrong.tile:
        below = wrong.start // wrong.tile * wrong.tile
        for new in (below + wrong.tile, below):
            edits = Editor(index.path, index.syntax)
            edits.replace(start, str(new))
            if isinstance(index.node, ast.Slice) and index.node.upper is not None:
                edits.replace(index.node.upper, str(new + wrong.size))
            yield suggested(f"Start the slice at {new}, on a tile", edits)
    elif size is not None and isinstance(size, ast.Constant):
        edits = Editor(index.path, index.syntax)
        new = max(wrong.tile, wrong.size // wrong.tile * wrong.tile)
        edits.replace(size, str(new))
        yield suggested(f"Take {new}, whole tiles", edits)


def _bounds(index: Spot) -> tuple[ast.expr | None, ast.expr | None]:
    """Start and size of a slice, as they are written."""
    node = index.syntax.value(index.node) if isinstance(index.node, ast.Name) else index.node
    if isinstance(node, ast.Call):
        given = index.syntax.arguments(node)
        return given.get(0, "start"), given.get(1, "size")
    if isinstance(node, ast.Slice):
        return node.lower, None
    return None, None
