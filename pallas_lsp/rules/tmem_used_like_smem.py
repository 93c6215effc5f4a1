"""
## What it does
Finds refs in tensor memory (TMEM) that are read, stored, sliced or transposed as refs in shared memory are.

## Why it is wrong
TMEM is reached by instructions of its own, which run on while the kernel goes on: `plgpu.async_load_tmem(ref)` and
`plgpu.async_store_tmem(ref, value)`. It can be sliced along whole blocks of columns, not along rows, not indexed and
not transposed.

## Example
```python
o_ref[...] = acc_tmem[...]
```

## Use instead
```python
o_ref[...] = plgpu.async_load_tmem(acc_tmem)
plgpu.wait_load_tmem()    # before the same TMEM is written again
```

## Fix safety
Loading and storing with the right function is safe: it is what the index was meant to do. The wait that is added
after a load costs little.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`_get_lowering_rule`, `_swap_lowering_rule` and `_handle_transforms` in `jax/_src/pallas/mosaic_gpu/lowering.py`;
`_ensure_right_number_of_layouts` in `jax/experimental/mosaic/gpu/layout_inference.py`; `TMEMRef.slice` in
`jax/experimental/mosaic/gpu/tcgen05.py`; `transpose_ref` in `jax/_src/pallas/mosaic_gpu/core.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import CORE, LOWERING, MGPU, PLGPU, Operand, argument, operands
from pallas_lsp.rules.shared.gpu_rewrites import in_tmem_layout
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM",)
SPECIFICITY = 57
SITES = (
    (LOWERING, "_get_lowering_rule"),
    (LOWERING, "_swap_lowering_rule"),
    (LOWERING, "_handle_transforms"),
    (CORE, "transpose_ref"),
    (f"{MGPU}layout_inference.py", "_ensure_right_number_of_layouts"),
    (f"{MGPU}tcgen05.py", "TMEMRef.slice"),
    (f"{MGPU}core.py", "_lower_as_gpu_kernel"),
)
_LOADS, _STORES = ("get", "masked_load", "load"), ("swap", "masked_swap", "addupdate")
_SLICED = ("async_load_tmem", "async_store_tmem", "async_load", "async_store", "tcgen05_mma", "async_copy_smem_to_tmem")
_COMPUTED = re.compile(r"'AbstractTMEMRef' object has no attribute '_")


def judge(fault: Fault, context: Context) -> Finding | None:
    if raised_in(fault, CORE, "transpose_ref") or passed_through(fault, CORE, "transpose_ref"):
        given = next((o for o in operands(fault).values() if o.space == "tmem"), None)
        if given is None and "TMEM" not in fault.message:
            return None
        spot = argument(context, fault, "ref", "transpose_ref")
        place = spot.location if spot is not None else context.locate(fault)
        text = (
            f"`{short(context.source(place), 40)}` is in TMEM, which cannot be transposed: transpose the operand in "
            "SMEM, or the value after `plgpu.async_load_tmem` outside the kernel."
        )
        return finding(__name__, fault, context, place, text)
    if _COMPUTED.search(fault.message):
        return _computed(fault, context)
    if fault.equation is None or fault.stage != "lower":
        return None
    tmem = next((o for o in operands(fault).values() if o.space == "tmem"), None)
    if tmem is None:
        return None
    name = fault.equation.primitive
    if name in _LOADS or name in _STORES:
        return _indexed(fault, context, tmem, name in _LOADS)
    if name in _SLICED and tmem.slices and tmem.allocation is not None:
        return _sliced(fault, context, tmem)
    return None


def _computed(fault: Fault, context: Context) -> Finding:
    """A ref in TMEM used as a value."""
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    source = short(context.source(place), 40)
    text = f"`{source}` computes with a ref in tensor memory: load its value first, with `plgpu.async_load_tmem(ref)`."
    fixes: list[Fix | None] = []
    if syntax is not None and isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            edits = Editor(place.path, syntax)
            load = edits.spell(f"{PLGPU}.async_load_tmem", node, ALIAS)
            wait = edits.spell(f"{PLGPU}.wait_load_tmem", node, ALIAS)
            statement = syntax.statement(node)
            if isinstance(side, ast.Name) and load and wait and statement is not None:
                edits.replace(side, f"{load}({side.id})")
                edits.add_after(statement, f"{wait}()")
                fixes.append(safe(f"Load the value of `{side.id}`", edits))
    return finding(__name__, fault, context, place, text, (), fixes)


def _indexed(fault: Fault, context: Context, tmem: Operand, loads: bool) -> Finding:
    place = context.locate(fault)
    source = short(context.source(place), 40)
    how = "plgpu.async_load_tmem(ref)" if loads else "plgpu.async_store_tmem(ref, value)"
    text = f"`{source}` {'reads' if loads else 'stores to'} tensor memory, which only `{how}` can."
    syntax, node = context.syntax(place.path), context.node(place)
    fixes: list[Fix | None] = []
    if syntax is not None and isinstance(node, ast.AST):
        spot = Spot(place.path, syntax, node) if isinstance(node, ast.expr) else None
        fixes = list(_load(spot) if loads else _store(spot, context)) if spot is not None else []
    return finding(__name__, fault, context, place, text, tmem.related(context, "It is allocated here."), fixes)


def _view(syntax_source: str, index: ast.expr, index_source: str) -> str:
    """The ref, sliced as an index slices it: ``ref`` for ``ref[...]``, ``ref.at[:, :64]`` for ``ref[:, :64]``."""
    if isinstance(index, ast.Constant) and index.value is ...:
        return syntax_source
    if isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None:
        return syntax_source
    return f"{syntax_source}.at[{index_source}]"


def _load(spot: Spot) -> Iterator[Fix | None]:
    node = spot.node
    if not isinstance(node, ast.Subscript):
        return
    edits = Editor(spot.path, spot.syntax)
    load = edits.spell(f"{PLGPU}.async_load_tmem", node, ALIAS)
    wait = edits.spell(f"{PLGPU}.wait_load_tmem", node, ALIAS)
    if load is None or wait is None:
        return
    view = _view(spot.syntax.source(node.value), node.slice, spot.syntax.source(node.slice))
    edits.replace(node, f"{load}({view})")
    statement = spot.syntax.statement(node)
    if statement is not None and isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
        edits.add_after(statement, f"{wait}()")
    yield safe("Load it with `plgpu.async_load_tmem` and wait for it", edits)


def _store(spot: Spot, context: Context) -> Iterator[Fix | None]:
    statement = spot.syntax.statement(spot.node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript):
        return
    edits = Editor(spot.path, spot.syntax)
    store = edits.spell(f"{PLGPU}.async_store_tmem", target, ALIAS)
    wait = edits.spell(f"{PLGPU}.commit_tmem", target, ALIAS)
    if store is None or wait is None:
        return
    view = _view(spot.syntax.source(target.value), target.slice, spot.syntax.source(target.slice))
    value = spot.syntax.source(statement.value)
    if () < context.jax < (0, 11):
        value = in_tmem_layout(edits, statement.value) or value
    edits.replace(statement, f"{store}({view}, {value})")
    edits.add_after(statement, f"{wait}()")
    yield safe("Store it with `plgpu.async_store_tmem` and `plgpu.commit_tmem`", edits)


def _sliced(fault: Fault, context: Context, tmem: Operand) -> Finding | None:
    whole = tmem.allocation.shape if tmem.allocation is not None else ()
    indices = tmem.slices[-1]
    name = "acc" if "acc" in operands(fault) and tmem is operands(fault)["acc"] else tmem.name
    spot = argument(context, fault, name) or argument(context, fault, "ref")
    place = spot.location if spot is not None else context.locate(fault)
    source = short(context.source(place), 40)
    if any("size" not in index for index in indices):
        text = (
            f"`{source}` takes a single row or column: TMEM can be sliced, in whole blocks of columns, but not indexed."
        )
    elif len(indices) == 2 and whole and indices[0].get("size") != whole[0]:
        text = f"`{source}` takes {indices[0].get('size')} of {whole[0]} rows: TMEM can be sliced along columns only."
    elif len(indices) == 2 and indices[1].get("start") is None:
        text = (
            f"`{source}` starts at a column that only the running kernel knows, and jax cannot tell that it is a "
            "multiple of the layout's columns: TMEM is sliced in whole blocks of columns (`pl.multiple_of` promises "
            "it)."
        )
    else:
        return None
    return finding(__name__, fault, context, place, text, tmem.related(context, "It is allocated here."))
