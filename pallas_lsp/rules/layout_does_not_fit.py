"""
## What it does
Finds values whose shape does not fit the layout that is asked for, values that cannot be spread over a warpgroup at
all, and values whose layout has to be said.

## Why it is wrong
A layout spreads a value over the 128 threads of a warpgroup. `plgpu.Layout.WGMMA` takes matrices of multiples of 64
rows and 8 columns; the layout of a plain load takes any shape with a multiple of 128 elements. Under lane semantics
the layout of `jax.lax.broadcasted_iota`, `jnp.arange` and some broadcasts is unknown until it is said with
`plgpu.layout_cast`.

## Example
```python
x = plgpu.layout_cast(x_ref[...], plgpu.Layout.WGMMA)    # x_ref is (100, 128)
```

## Use instead
A block of (128, 128) whose surplus rows are masked, or another layout.

## Fix safety
The fixes are suggestions: another size changes the block; a cast says a layout that jax leaves open.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`Tiling.tile_shape` and `FragmentedArray.load_strided` in `jax/experimental/mosaic/gpu/fragmented_array.py`;
`_layout_cast_constraint_system` and others in `jax/experimental/mosaic/gpu/layout_inference.py`; `_iota_lowering` and
`_broadcast_in_dim_lowering_rule` in `jax/_src/pallas/mosaic_gpu/lowering.py`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_layouts import INFERENCE, conflict, inferred, made_iota, result_shape, strided_layouts
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU, PLGPU, called
from pallas_lsp.rules.shared.gpu_semantics import under_warpgroup_semantics
from pallas_lsp.rules.shared.gpu_sizes import everywhere, multiple
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("layouts",)
SPECIFICITY = 35
_ARRAY = f"{MGPU}fragmented_array.py"
SITES = (
    (_ARRAY, "Tiling.tile_shape.<locals>.fail"),
    (_ARRAY, "Tiling.tile_nested_shape_strides.<locals>.fail_if"),
    (_ARRAY, "_tiled_wgmma_layout"),
    (_ARRAY, "FragmentedArray.load_strided"),
    (_ARRAY, "FragmentedArray._store_untiled_splat"),
    (_ARRAY, "FragmentedArray.reshape"),
    (_ARRAY, "FragmentedArray.transfer_strided"),
    (INFERENCE, "_layout_cast_constraint_system"),
    (INFERENCE, "_mma_constraint_system"),
    (LOWERING, "_iota_lowering"),
    (LOWERING, "_broadcast_in_dim_lowering_rule"),
    (LOWERING, "_layout_cast_lowering_wg"),
    (LOWERING, "_relayout_lowering_wg"),
    ("jax/_src/pallas/mosaic_gpu/layout_rules.py", "GPUTiledLayout.for_array"),
)
_SHAPE = re.compile(r"(?:apply to shape|operand shape:?|memref<|vector<)\s*[\[(]?(?P<shape>[\d, x]+)")
_TILES = re.compile(r"[Tt]iling \(\((?P<tile>\d+(?:, \d+)*),?\)|tiles=\(\((?P<tile2>\d+(?:, \d+)*),?\)")
_THREADS = 128


def judge(fault: Fault, context: Context) -> Finding | None:
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    spot = Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.expr) else None
    if raised_in(fault, LOWERING, "_iota_lowering") and "layout" in fault.message:
        return _unknown(fault, context, spot) if made_iota(spot) else None
    if raised_in(fault, LOWERING, "_layout_cast_lowering_wg", "_relayout_lowering_wg"):
        source = short(context.source(place), 50)
        text = f"`{source}` casts a single number, which has no layout but `plgpu.Layout.WG_SPLAT`."
        return finding(__name__, fault, context, narrowed(place, context), text)
    if raised_in(fault, LOWERING, "_broadcast_in_dim_lowering_rule"):
        return _broadcast(fault, context, spot)
    shape = _shape(fault)
    odd = raised_in(fault, _ARRAY, "load_strided") or (
        raised_in(fault, _ARRAY, "_store_untiled_splat") and "multiple of" in fault.message
    )
    parts = conflict(fault, context) if inferred(fault) else []
    if parts and not any(p.layout for p in parts):
        if parts[-1].operation in ("vector_store", "vector_load") and parts[-1].spot is not None:
            place, odd = parts[-1].spot.location, True
        elif parts[-1].operation == "broadcast_in_dim":
            return _broadcast(fault, context, parts[-1].spot)
    if odd and shape is not None and math.prod(shape) % _THREADS:
        return _size(fault, context, place, shape)
    if raised_in(fault, _ARRAY, "load_strided") and shape is not None:
        source = short(context.source(place), 50)
        text = (
            f"`{source}` moves elements narrower than a byte, which threads cannot share out: convert the array to "
            "int8 before the launch, or the value before it is stored."
        )
        return finding(__name__, fault, context, narrowed(place, context), text)
    fits_not = raised_in(fault, _ARRAY, "fail", "fail_if", "_tiled_wgmma_layout") or raised_in(
        fault, INFERENCE, "_layout_cast_constraint_system"
    )
    if fits_not and shape is not None:
        return _tiles(fault, context, place, spot, shape)
    return None


def _shape(fault: Fault) -> tuple[int, ...] | None:
    """The shape at fault: as jax says it, else that of the operation's first array."""
    match = _SHAPE.search(fault.message)
    if match is not None:
        numbers = [int(n) for n in re.findall(r"\d+", match["shape"])]
        if numbers:
            return tuple(numbers)
    if fault.equation is not None:
        for type_ in (*fault.equation.inputs[-1:], *fault.equation.inputs, *fault.equation.outputs):
            inside = type_.partition("[")[2].rstrip("]>")
            if inside and all(part.isdigit() for part in inside.split(",")):
                return tuple(int(part) for part in inside.split(","))
    return None


def _text(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _size(fault: Fault, context: Context, place: Location, shape: tuple[int, ...]) -> Finding:
    syntax, node = context.syntax(place.path), context.node(place)
    statement = syntax.statement(node) if syntax is not None and isinstance(node, ast.Subscript) else None
    if syntax is not None and isinstance(statement, ast.Assign) and node in statement.targets:
        place = Location(place.path, syntax.range(statement.value))
    count = math.prod(shape)
    source = short(context.source(place), 50)
    text = (
        f"`{source}` is a value of shape {_text(shape)}: {count} elements, which cannot be spread evenly over the "
        f"{_THREADS} threads of a warpgroup. A value in registers has a multiple of {_THREADS} elements, or is a "
        "single number (`ref[i, j]`)."
    )
    return finding(__name__, fault, context, narrowed(place, context), text)


def _tiles(fault: Fault, context: Context, place: Location, spot: Spot | None, shape: tuple[int, ...]) -> Finding:
    match = _TILES.search(fault.message)
    tile = tuple(int(n) for n in (match["tile"] or match["tile2"]).split(",")) if match is not None else (64, 8)
    source = short(context.source(place), 50)
    layout = _layout(spot)
    what = f"the layout `{layout}`" if layout else "a tiled layout, such as that of matrix products,"
    text = f"`{source}` is a value of shape {_text(shape)}, but {what} takes tiles of {_text(tile)}: "
    fixes: list[Fix] = []
    if len(shape) < len(tile):
        text += f"it has {len(shape)} dimension{'s' if len(shape) != 1 else ''}, and the tiles have {len(tile)}."
    else:
        wrong = [(s, t) for s, t in zip(shape[-len(tile) :], tile, strict=True) if s % t]
        text += ", ".join(f"{s} is no multiple of {t}" for s, t in wrong) + "." if wrong else "it is no whole number."
        if len(wrong) == 1 and spot is not None and wrong[0][0] > 1:
            size, step = wrong[0]
            fixes = list(everywhere(spot.path, spot.syntax, size, multiple(size, step), f"a multiple of {step}"))
    return finding(__name__, fault, context, narrowed(place, context), text, (), fixes)


def _layout(spot: Spot | None) -> str:
    """The layout that a cast at the place of a fault asks for."""
    node: ast.AST | None = spot.node if spot is not None else None
    while spot is not None and node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, ast.Call) and called(spot.syntax, node) in ("layout_cast", "load"):
            given = spot.syntax.arguments(node).get(1, "new_layout") or spot.syntax.arguments(node).keywords.get(
                "layout"
            )
            return short(spot.syntax.source(given), 40) if given is not None else ""
        node = spot.syntax.parent(node)
    return ""


def _unknown(fault: Fault, context: Context, spot: Spot | None) -> Finding:
    place = context.locate(fault)
    source = short(context.source(place), 50)
    text = (
        f"`{source}` has no layout yet: under lane semantics it has to be said how an iota is spread over the "
        "threads, with `plgpu.layout_cast` right around it."
    )
    fixes: list[Fix | None] = list(_iota_casts(fault, spot)) if spot is not None else []
    fixes += under_warpgroup_semantics(context, fault)
    return finding(__name__, fault, context, narrowed(place, context), text, (), fixes)


def _iota_casts(fault: Fault, spot: Spot) -> Iterator[Fix | None]:
    shape = result_shape(fault)
    if shape is None:
        return
    edits = Editor(spot.path, spot.syntax)
    cast = edits.spell(f"{PLGPU}.layout_cast", spot.node, ALIAS)
    layout = edits.spell(f"{PLGPU}.Layout", spot.node, ALIAS)
    if cast is None or layout is None:
        return
    names = strided_layouts(layout, shape)
    if len(shape) == 2 and shape[0] % 64 == 0 and shape[1] % 8 == 0:
        names.append(f"{layout}.WGMMA")
    for name in names:
        edits = Editor(spot.path, spot.syntax)
        edits.replace(spot.node, f"{cast}({spot.source}, {name})")
        yield suggested(f"Give it the layout `{name}`", edits)


def _broadcast(fault: Fault, context: Context, spot: Spot | None) -> Finding:
    place = spot.location if spot is not None else context.locate(fault)
    source = short(context.source(place), 50)
    equation = fault.equation
    types = ""
    if equation is not None and equation.primitive == "broadcast_in_dim" and equation.inputs and equation.outputs:
        types = f" ({equation.inputs[0]} to {equation.outputs[0]})"
    if "Multiple options" in fault.message or "No compatible layout" in fault.message:
        text = (
            f"The layout of `{source}`{types} is not clear: several fit, or none that jax tries. Say it with "
            "`plgpu.layout_cast` right around the broadcast."
        )
    else:
        text = (
            f"`{source}` is broadcast{types}, but its value lies in the layout of a plain load, which knows no rows "
            "and columns. Load it as the rows or columns of a tiled layout: `plgpu.load(ref, "
            "layout=plgpu.Layout.WGMMA.reduce(1), optimized=False)` for one value for each row."
        )
    fixes = list(_broadcast_fixes(context, fault, spot)) if spot is not None else []
    fixes += under_warpgroup_semantics(context, fault)
    return finding(__name__, fault, context, narrowed(place, context), text, (), fixes)


def _broadcast_fixes(context: Context, fault: Fault, spot: Spot) -> Iterator[Fix]:
    """The vector that is broadcast, loaded as the rows or columns of the layout of matrix products."""
    source = next(
        (
            n
            for n in ast.walk(_outer(spot))
            if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant) and n.slice.value is ...
        ),
        None,
    )
    if source is None:
        return
    edits = Editor(spot.path, spot.syntax)
    load = edits.spell(f"{PLGPU}.load", spot.node, ALIAS)
    layout = edits.spell(f"{PLGPU}.Layout", spot.node, ALIAS)
    if load is None or layout is None:
        return
    dimensions = fault.equation.params.get("broadcast_dimensions", "") if fault.equation is not None else ""
    kept = 1 if "0" in dimensions or not dimensions else 0
    index = ", ()" if () < context.jax < (0, 11) else ""
    for axis in (kept, 1 - kept):
        edits = Editor(spot.path, spot.syntax)
        ref = spot.syntax.source(source.value)
        edits.replace(source, f"{load}({ref}{index}, layout={layout}.WGMMA.reduce({axis}), optimized=False)")
        what = "row" if axis == 1 else "column"
        fix = suggested(f"Load it with one value for each {what}", edits)
        if fix is not None:
            yield fix


def _outer(spot: Spot) -> ast.expr:
    """The index around an expression that starts where it does: ``y_ref[...][:, None]`` for ``y_ref[...]``."""
    node = spot.node
    parent = spot.syntax.parent(node)
    while isinstance(parent, ast.Subscript) and parent.value is node:
        node, parent = parent, spot.syntax.parent(parent)
    return node
