"""
## What it does
Explains why jax finds no layouts for the values of a kernel: which operations ask for which layout, and where they
meet.

## Why it is wrong
The elements of a value are spread over the registers of 128 threads. The way they are spread is its layout. wgmma
gives its result in one layout (`plgpu.Layout.WGMMA`), a load of a plain ref in another (`plgpu.Layout.WG_STRIDED`),
and `plgpu.layout_cast` asks for a given one. Values that are combined need the same layout. Under warpgroup semantics
(the default from jax 0.11) jax infers layouts that fit all operations; where two ask for different ones, there are
none.

## Example
```python
product = pl.run_scoped(scope, plgpu.ACC((64, 128)))                       # plgpu.Layout.WGMMA
bias = plgpu.layout_cast(bias_smem[...], plgpu.Layout.WG_STRIDED((64, 128), vec_size=2))
o_ref[...] = product + bias
```

## Use instead
```python
bias = plgpu.layout_cast(bias_smem[...], plgpu.Layout.WGMMA)
o_ref[...] = product + bias
```

## Fix safety
Asking for the other layout computes the same; how the value is loaded may become slower. The fixes are suggestions.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12 (under lane semantics, the default of jax 0.10, without the places of both sides).

## Source
`infer_layout` and `diagnose_unsatisfiable_system` in `jax/experimental/mosaic/gpu/layout_inference.py`;
`FragmentedArray._pointwise` and `to_layout` in `jax/experimental/mosaic/gpu/fragmented_array.py`, "Incompatible
FragmentedArray layouts"; the checks "Layout mismatch" in `jax/experimental/mosaic/gpu/dialect_lowering.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_layouts import INFERENCE, Part, conflict, inferred
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import MGPU, PLGPU, called
from pallas_lsp.rules.shared.gpu_rewrites import load_in_layout, loaded_with_layout
from pallas_lsp.rules.shared.gpu_semantics import under_warpgroup_semantics
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.replacements import rank_of
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("layouts",)
SPECIFICITY = 20
_ARRAY = f"{MGPU}fragmented_array.py"
_LOWERING = f"{MGPU}dialect_lowering.py"
SITES = (
    (INFERENCE, "infer_layout"),
    (INFERENCE, "diagnose_unsatisfiable_system"),
    (INFERENCE, "find_assignments_for"),
    (INFERENCE, "try_raise_constraint_specific_error"),
    (INFERENCE, "_check_unsatisfiable_divisibility_constraints"),
    (_ARRAY, "FragmentedArray._pointwise"),
    (_ARRAY, "FragmentedArray.to_layout"),
    (_LOWERING, "_conversion_op_lowering_rule"),
    (_LOWERING, "_unary_op_lowering_rule"),
    (_LOWERING, "_binary_op_lowering_rule"),
    (_LOWERING, "_cmpi_op_lowering_rule"),
    (_LOWERING, "_cmpf_op_lowering_rule"),
    (_LOWERING, "_bitcast_op_lowering_rule"),
    (_LOWERING, "_select_op_lowering_rule"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    if inferred(fault):
        parts = conflict(fault, context)
        if parts:
            return _of_parts(fault, context, parts)
        if fault.site is not None and (fault.site.file, fault.site.function) in SITES:
            return _unexplained(fault, context)
        return None
    if raised_in(fault, _ARRAY, "_pointwise") and "layouts" in fault.message:
        return _pointwise(fault, context)
    if raised_in(fault, _ARRAY, "to_layout") and "Cannot convert" in fault.message:
        return _cast(fault, context)
    if fault.site is not None and fault.site.file == _LOWERING and fault.message == "Layout mismatch":
        return _pointwise(fault, context)
    return None


def _of_parts(fault: Fault, context: Context, parts: Sequence[Part]) -> Finding:
    asking = [p for p in parts if p.layout]
    meeting = [p for p in parts if not p.layout] or [parts[-1]]
    place = context.locate(fault)
    if meeting[-1].spot is not None:
        place = meeting[-1].spot.location
    source = short(context.source(place), 50)
    layouts = list(dict.fromkeys(p.layout for p in asking))
    if len(layouts) >= 2:
        told = " and ".join(f"{p.what} asks for {p.layout}{p.line}" for p in _first_of_each(asking))
        text = f"Two layouts meet in `{source}`: {told}. Values that are combined need the same layout."
    elif layouts:
        first = asking[0]
        text = (
            f"`{source}` is {meeting[-1].what}, which cannot work on {first.layout}, the layout that {first.what} "
            f"asks for{first.line}."
        )
    else:
        text = f"`{source}` is {meeting[-1].what}, for which no layout fits: neither its operand's nor any other."
    related = [
        Related(p.spot.location, f"{p.what[0].upper()}{p.what[1:]} asks for {p.layout} here.")
        for p in _first_of_each(asking)
        if p.spot is not None and p.spot.location != place
    ]
    return finding(__name__, fault, context, narrowed(place, context), text, related, list(_fixes(context, asking)))


def _first_of_each(parts: Sequence[Part]) -> list[Part]:
    return list({p.layout: p for p in reversed(parts)}.values())[::-1]


def _fixes(context: Context, asking: Sequence[Part]) -> Iterator[Fix | None]:
    """Every layout cast given the layout that another operation asks for, or taken out."""
    for part in asking:
        if part.operation != "layout_cast" or part.spot is None:
            continue
        call = part.spot.node if isinstance(part.spot.node, ast.Call) else part.spot.syntax.call(part.spot.node)
        if call is None or called(part.spot.syntax, call) != "layout_cast":
            continue
        given = part.spot.syntax.arguments(call)
        layout, value = given.get(1, "new_layout"), given.get(0, "x")
        for other in dict.fromkeys(p.layout for p in asking if p.layout != part.layout):
            if layout is None or not other.startswith("plgpu.Layout."):
                continue
            edits = Editor(part.spot.path, part.spot.syntax)
            name = edits.spell(f"{PLGPU}.Layout", call, ALIAS)
            if name is not None:
                edits.replace(layout, other.replace("plgpu.Layout", name, 1))
                yield suggested(f"Ask for `{other}` instead of `{part.layout}`", edits)
                yield from _loaded(context, part.spot, call, value, other, name)
        if value is not None:
            edits = Editor(part.spot.path, part.spot.syntax)
            edits.replace(call, part.spot.syntax.source(value))
            yield suggested(f"Leave the cast to `{part.layout}` out: the layout is inferred", edits)


def _loaded(
    context: Context, spot: Spot, call: ast.Call, value: ast.expr | None, layout: str, name: str
) -> Iterator[Fix | None]:
    """The value of a cast loaded in the layout, by the slow load that every ref allows."""
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Constant):
        return
    edits = Editor(spot.path, spot.syntax)
    load = edits.spell(f"{PLGPU}.load", call, ALIAS)
    if load is None:
        return
    ref = spot.syntax.source(value.value)
    index = ", ()" if () < context.jax < (0, 11) else ""
    wanted = layout.replace("plgpu.Layout", name, 1)
    edits.replace(call, f"{load}({ref}{index}, layout={wanted}, optimized=False)")
    yield suggested(f"Load `{ref}` in `{layout}`, slowly (`optimized=False`)", edits)


def _unexplained(fault: Fault, context: Context) -> Finding:
    place = narrowed(context.locate(fault), context)
    text = (
        "jax finds no layouts for the values of this kernel that suit all its operations, and does not tell which of "
        "them disagree. Ask for the layouts that are meant with `plgpu.layout_cast`, one value at a time."
    )
    return finding(__name__, fault, context, place, text)


def _pointwise(fault: Fault, context: Context) -> Finding:
    place = context.locate(fault)
    types = " and ".join(fault.equation.inputs[:2]) if fault.equation is not None else "values"
    source = short(context.source(place), 50)
    text = (
        f"`{source}` combines {types} of different layouts: under lane semantics the layout of a value comes from how "
        "it was loaded or computed, and is not changed. Cast one with `plgpu.layout_cast`, or use warpgroup "
        "semantics, which infer layouts."
    )
    fixes: list[Fix | None] = list(under_warpgroup_semantics(context, fault))
    fixes += _casts(context, fault)
    return finding(__name__, fault, context, narrowed(place, context), text, (), fixes)


def _casts(context: Context, fault: Fault) -> Iterator[Fix | None]:
    """The sides that are plain loads, loaded in the layout of matrix products; one of them, and both."""
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    if syntax is None or not isinstance(node, ast.BinOp):
        return
    types = fault.equation.inputs if fault.equation is not None else ()
    sides = [
        side for side, t in zip((node.left, node.right), types, strict=False) if rank_of(t) == 2 and "[1," not in t
    ]
    for side in reversed(sides):
        value = syntax.value(side)
        if isinstance(value, ast.Call) and called(syntax, value) == "layout_cast":
            given = syntax.arguments(value)
            layout, operand = given.get(1, "new_layout"), given.get(0, "x")
            edits = Editor(place.path, syntax)
            name = edits.spell(f"{PLGPU}.Layout", value, ALIAS)
            if layout is not None and operand is not None and name is not None:
                yield from _loaded(context, Spot(place.path, syntax, value), value, operand, "plgpu.Layout.WGMMA", name)
        yield from loaded_with_layout(context, Spot(place.path, syntax, node), side)
    edits = Editor(place.path, syntax)
    refs = [load_in_layout(context, edits, syntax, side) for side in sides]
    if len(refs) == 2 and None not in refs:
        yield suggested(f"Load `{refs[0]}` and `{refs[1]}` in the layout `plgpu.Layout.WGMMA`", edits)


def _cast(fault: Fault, context: Context) -> Finding:
    place = context.locate(fault)
    source = short(context.source(place), 50)
    text = (
        f"`{source}` asks for a layout that this value cannot be brought into: only some layouts can be converted into "
        "each other in registers. Load the value in that layout (`plgpu.load(ref, layout=...)`), or go through SMEM."
    )
    syntax, node = context.syntax(place.path), context.node(place)
    fixes: list[Fix | None] = []
    if syntax is not None and isinstance(node, ast.Call) and called(syntax, node) == "layout_cast":
        given = syntax.arguments(node)
        layout, value = given.get(1, "new_layout"), given.get(0, "x")
        name = syntax.dotted(layout) if layout is not None else None
        loaded = syntax.value(value) if value is not None else None
        if name is not None and ".Layout." in name and isinstance(loaded, ast.Subscript):
            fixes += loaded_with_layout(context, Spot(place.path, syntax, node), value, name.rpartition(".")[2])
    fixes += under_warpgroup_semantics(context, fault)
    return finding(__name__, fault, context, narrowed(place, context), text, (), fixes)
