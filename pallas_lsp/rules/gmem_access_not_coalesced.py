"""
## What it does
Finds loads and stores whose layout does not suit the memory: values in the layout of matrix products that are stored
to or loaded from GMEM in narrow pieces, and transfers to SMEM that would meet in the same memory banks.

## Why it is wrong
The GPU reads and writes global memory in sectors of 32 bytes. In the layout of matrix products (`plgpu.Layout.WGMMA`)
each thread holds two neighbouring elements: with 32-bit elements four threads fill a sector, with 16-bit elements
they do not. jax refuses such an access unless it is told that the slow one is wanted: `optimized=False`. From SMEM,
or with a copy from there (`plgpu.copy_smem_to_gmem`), the access is fast.

## Example
```python
o_gmem[...] = acc_ref[...].astype(jnp.float16)
```

## Use instead
```python
o_smem[...] = acc_ref[...].astype(jnp.float16)
plgpu.commit_smem()
plgpu.copy_smem_to_gmem(o_smem, o_gmem)
plgpu.wait_smem_to_gmem(0)
```

or, slower, `plgpu.store(o_gmem, value, optimized=False)` (jax 0.12).

## Fix safety
`optimized=False` computes the same and is slow where much is moved: a suggestion.

## Applies to
Mosaic GPU; jax 0.10 and 0.11 for loads, 0.12 for stores of 16-bit values too.

## Source
`plan_gmem_transfer`, `plan_tiled_transfer` and `FragmentedArray.transfer_tiled` in
`jax/experimental/mosaic/gpu/fragmented_array.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import MGPU, PLGPU, Operand, called, operands
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.ref_loads import is_whole
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("layouts",)
_FILE = f"{MGPU}fragmented_array.py"
SITES = (
    (_FILE, "plan_gmem_transfer"),
    (_FILE, "plan_tiled_transfer"),
    (_FILE, "FragmentedArray.transfer_tiled"),
)
_HAS_STORE = (0, 12)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, _FILE, "plan_gmem_transfer", "plan_tiled_transfer", "transfer_tiled"):
        return None
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    spot = Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.expr) else None
    stores = fault.equation is not None and fault.equation.primitive in ("swap", "store", "masked_swap")
    ref = next(iter(operands(fault).values()), None)
    in_smem = raised_in(fault, _FILE, "plan_tiled_transfer") or (ref is not None and ref.space == "smem")
    source = short(context.source(place), 40)
    doing = "stores" if stores else "loads"
    if in_smem:
        text = (
            f"`{source}` {doing} a value whose layout meets the banks of shared memory: neighbouring threads would "
            "wait for each other. Give the ref in SMEM a tiling and swizzle that suit the layout "
            "(`transforms=(plgpu.TilingTransform((8, n)), plgpu.SwizzleTransform(128))`), or say `optimized=False`."
        )
    else:
        text = (
            f"`{source}` {doing} a value in pieces that do not fill the 32-byte sectors of global memory, as values "
            "in the layout of a matrix product do. Go through SMEM (`plgpu.copy_smem_to_gmem`, "
            "`plgpu.copy_gmem_to_smem`), or say with `optimized=False` that the slow access is wanted."
        )
    fixes = list(_fixes(context, spot, stores, ref)) if spot is not None else []
    return finding(__name__, fault, context, narrowed(place, context), text, (), fixes)


def _fixes(context: Context, spot: Spot, stores: bool, ref: Operand | None) -> Iterator[Fix | None]:
    syntax = spot.syntax
    if stores:
        statement = syntax.statement(spot.node)
        if context.jax < _HAS_STORE or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return
        target = statement.targets[0]
        if not isinstance(target, ast.Subscript):
            return
        edits = Editor(spot.path, syntax)
        store = edits.spell(f"{PLGPU}.store", target, ALIAS)
        if store is None:
            return
        start, end = syntax.span(target)
        first = edits.whole(statement.value)[0]
        edits.change(
            start, first, f"{store}({_view(syntax.source(target.value), target, syntax.source(target.slice))}, "
        )
        edits.insert(edits.whole(statement.value)[1], ", optimized=False)")
        del end
        yield suggested("Store it with `plgpu.store(..., optimized=False)`, which is slow", edits)
        return
    del ref
    yield from _loads(context, spot)


def _loads(context: Context, spot: Spot) -> Iterator[Fix | None]:
    syntax, node = spot.syntax, spot.node
    old = () < context.jax < _HAS_STORE
    edits = Editor(spot.path, syntax)
    load = edits.spell(f"{PLGPU}.load", node, ALIAS)
    if isinstance(node, ast.Call) and called(syntax, node) == "load":
        edits.insert_argument(node, "optimized=False")
        yield suggested("Say `optimized=False`: the slow load is wanted", edits)
        return
    if not isinstance(node, ast.Subscript) or load is None:
        return
    view = _view(syntax.source(node.value), node, syntax.source(node.slice))
    cast = _cast(spot)
    index = ", ()" if () < context.jax < (0, 11) else ""
    if cast is not None:
        call, layout = cast
        edits.replace(call, f"{load}({view}{index}, layout={layout}, optimized=False)")
    elif not old:
        edits.replace(node, f"{load}({view}, optimized=False)")
    else:
        return
    yield suggested("Load it with `plgpu.load(..., optimized=False)`, which is slow", edits)


def _view(ref: str, node: ast.Subscript, index: str) -> str:
    return ref if is_whole(node.slice) else f"{ref}.at[{index}]"


def _cast(spot: Spot) -> tuple[ast.Call, str] | None:
    """The layout cast of what is loaded, and the layout: directly around it, or of its name."""
    syntax = spot.syntax
    parent = syntax.parent(spot.node)
    if isinstance(parent, ast.Call) and called(syntax, parent) == "layout_cast":
        layout = syntax.arguments(parent).get(1, "new_layout")
        if layout is not None and syntax.arguments(parent).get(0, "x") is spot.node:
            return parent, syntax.source(layout)
    return None
