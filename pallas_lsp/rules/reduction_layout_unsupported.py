"""
## What it does
Finds reductions along an axis of a value whose layout does not allow it, and reductions that Mosaic GPU does not
have.

## Why it is wrong
A plain load spreads the elements of a value over the threads one after another (`plgpu.Layout.WG_STRIDED`), without
regard to rows and columns. Such a value can be reduced as a whole. To reduce rows or columns it has to be in a tiled
layout, such as that of matrix products (`plgpu.Layout.WGMMA`): the result of wgmma, a load from SMEM with a tiling
and swizzle, or a load that asks for it.

## Example
```python
o_ref[...] = jnp.sum(x_ref[...], axis=1)
```

## Use instead
```python
x = plgpu.load(x_ref, layout=plgpu.Layout.WGMMA, optimized=False)
o_ref[...] = jnp.sum(x, axis=1)
```

or allocate the ref in SMEM with `transforms=(plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))` (for
float32), from which loads are fast. One axis at a time is reduced.

## Fix safety
The fixes compute the same and are suggestions, since the load may be slower.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_reduce_lowering_rule` in `jax/_src/pallas/mosaic_gpu/lowering.py`; `FragmentedArray.reduce` in
`jax/experimental/mosaic/gpu/fragmented_array.py`; `_vector_multi_dim_reduction_op_lowering_rule` in
`jax/experimental/mosaic/gpu/dialect_lowering.py`; layout inference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.gpu_layouts import conflict, inferred, reduction_of
from pallas_lsp.rules.shared.gpu_mma import set_keyword, swizzle_for, transforms_text
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU, Operand, allocation, bits
from pallas_lsp.rules.shared.gpu_rewrites import first_argument, loaded_with_layout
from pallas_lsp.rules.shared.launches import born, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("layouts", "primitives")
SPECIFICITY = 30
_ARRAY = f"{MGPU}fragmented_array.py"
_DIALECT = f"{MGPU}dialect_lowering.py"
SITES = (
    (LOWERING, "_reduce_lowering_rule"),
    (LOWERING, "_reduce_max_lowering_rule_wg"),
    (LOWERING, "_reduce_min_lowering_rule_wg"),
    (LOWERING, "_reduce_prod_lowering_rule_wg"),
    (_ARRAY, "FragmentedArray.reduce"),
    (_ARRAY, "FragmentedArray.reduce.<locals>.swizzle_warp_idx_fn"),
    (_DIALECT, "_vector_multi_dim_reduction_op_lowering_rule"),
    (_DIALECT, "_vector_reduction_op_lowering_rule"),
)
_TOLD = (
    ("multiple Pallas threads", "a sum over a whole value is only possible in a kernel with one thread"),
    ("Multi-axis", "only one axis is reduced at a time"),
    ("Only 1 reduction dimension", "only one axis is reduced at a time"),
    ("Sub-byte", "elements narrower than a byte cannot be reduced: convert them first"),
    ("Unsupported dtype", "this element type cannot be reduced: convert it to float32 or int32 first"),
    ("Unoptimized configuration", "this layout spreads the rows over the warps in a way that no reduction crosses"),
    ("scratch", "the reduction needs more scratch memory: set `reduction_scratch_bytes` in `plgpu.CompilerParams`"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    raised = raised_in(fault, LOWERING, *[f for file, f in SITES if file == LOWERING]) or raised_in(
        fault, _DIALECT, "_vector_multi_dim_reduction_op_lowering_rule", "_vector_reduction_op_lowering_rule"
    )
    raised = raised or raised_in(fault, _ARRAY, "FragmentedArray.reduce", "swizzle_warp_idx_fn")
    parts = conflict(fault, context) if inferred(fault) else []
    by_layout = bool(parts) and any(p.operation == "multi_reduction" for p in parts)
    by_layout = by_layout and len({p.layout for p in parts if p.layout}) < 2
    if not raised and not by_layout:
        return None
    place = context.locate(fault)
    if by_layout:
        found = next((p.spot for p in parts if p.operation == "multi_reduction" and p.spot is not None), None)
        place = found.location if found is not None else place
    syntax, node = context.syntax(place.path), context.node(place)
    call = reduction_of(syntax, node) if syntax is not None and node is not None else None
    spot = Spot(place.path, syntax, call) if syntax is not None and call is not None else None
    place = spot.location if spot is not None else place
    source = short(context.source(place), 50)
    told = next((text for words, text in _TOLD if words in fault.message), None)
    if told is not None:
        return finding(__name__, fault, context, place, f"`{source}` has no lowering: {told}.", (), _one_axis(spot))
    text = (
        f"`{source}` reduces along an axis, but the layout of its operand, that of a plain load, knows no rows and "
        "columns: it can only be reduced as a whole. Load it in a tiled layout, `plgpu.Layout.WGMMA`."
    )
    operand = first_argument(spot) if spot is not None else None
    fixes: list[Fix | None] = []
    related: tuple[Related, ...] = ()
    if spot is not None and operand is not None:
        fixes += list(_tiled(fault, context, spot, operand))
        fixes += list(loaded_with_layout(context, spot, operand))
        value = spot.syntax.value(operand)
        if value is not operand and isinstance(value, ast.expr):
            related = (Related(spot.at(value).location, "Its operand is made here."),)
    return finding(__name__, fault, context, place, text, related, fixes)


def _tiled(fault: Fault, context: Context, spot: Spot, operand: ast.expr) -> Iterator[Fix | None]:
    """The SMEM allocation that the operand is loaded from, tiled and swizzled."""
    value = spot.syntax.value(operand)
    if not isinstance(value, ast.Subscript) or not isinstance(value.value, ast.Name):
        return
    given = fault.facts.get("given")
    entries = given.get("scratch") or () if isinstance(given, dict) else ()
    names = _scratch_names(context, fault, spot)
    for name, entry in zip(names, entries, strict=False):
        if name != value.value.id or not isinstance(entry, dict) or entry.get("memory_space") != "smem":
            continue
        made, where = allocation(entry), born(context, entry.get("frames"))
        if where is None or not isinstance(where.node, ast.Call) or len(made.shape) < 2 or made.shape[-2] % 8:
            return
        if any(k.arg == "transforms" for k in where.node.keywords) or len(where.node.args) > 2:
            return
        swizzle = swizzle_for(Operand("", made.shape, made.dtype, "smem", (), None))
        edits = Editor(where.path, where.syntax)
        text = transforms_text(edits, where.node, swizzle, bits(made.dtype)) if swizzle is not None else None
        if text is not None:
            set_keyword(edits, where.node, "transforms", text)
            yield suggested("Tile and swizzle the ref in SMEM, from which the load then is fast", edits)
        return


def _scratch_names(context: Context, fault: Fault, spot: Spot) -> list[str]:
    """The parameters of the body that the scratch types go to."""
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    given = fault.facts.get("given")
    count = len(given.get("scratch") or ()) if isinstance(given, dict) else 0
    if body is None or not count or body[0] != spot.path:
        return []
    return [p.arg for p in positional(body[2])[-count:]]


def _one_axis(spot: Spot | None) -> list[Fix | None]:
    """``jnp.sum(x, axis=(0, 1))`` as two reductions."""
    if spot is None or not isinstance(spot.node, ast.Call):
        return []
    axis = spot.syntax.arguments(spot.node).get(1, "axis")
    operand = first_argument(spot)
    if not isinstance(axis, ast.Tuple) or len(axis.elts) != 2 or operand is None or operand not in spot.node.args:
        return []
    numbers = [e.value for e in axis.elts if isinstance(e, ast.Constant) and isinstance(e.value, int)]
    if len(numbers) != 2 or min(numbers) < 0:
        return []
    name = spot.syntax.source(spot.node.func)
    inner = f"{name}({spot.syntax.source(operand)}, axis={max(numbers)})"
    edits = Editor(spot.path, spot.syntax)
    edits.replace(spot.node, f"{name}({inner}, axis={min(numbers)})")
    return [suggested("Reduce one axis after the other", edits)]
