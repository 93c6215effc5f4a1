"""
## What it does
Finds views of refs in TPU kernels that the hardware cannot address: an array of indices, a strided slice of a slice, a
bit cast or reshape that changes the tiles.

## Why it is wrong
A ref in VMEM is a block of tiles. A view of it starts somewhere and has strides; it cannot pick rows by a list, and it
cannot cut across tiles. Strides are there for the last step of a load or store only.

## Example
```python
def kernel(rows_ref, x_ref, o_ref):
    o_ref[...] = x_ref[rows_ref[...]]  # an array of indices
```

## Use instead
```python
def kernel(rows_ref, x_ref, o_ref):  # rows_ref in SMEM
    for i in range(8):
        o_ref[i] = x_ref[rows_ref[i]]
```

## Fix safety
Reading strided rows of a value from its ref is safe where the kernel does not store to that ref. Other findings have
no fix.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`_canonicalize_transforms_to_indexer`, `_slice_memref`, `_bitcast_memref`, `_reshape_memref`, `_transform_ref` in
`jax/_src/pallas/mosaic/lowering.py`, and the verifier of `vector.extract_strided_slice`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.ref_loads import PALLAS, is_stored_to, load_of
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "refs")

_LOWERING = "jax/_src/pallas/mosaic/lowering.py"
_VERIFY = ("_lower_jaxpr_to_func_common",)


def _strided_load(details: Details) -> Sequence[Fix]:
    """``x_ref[...][::2]`` -> ``x_ref[pl.ds(0, 32, 2)]``."""
    spot = details.spot
    if spot is None or not isinstance(spot.node, ast.Subscript):
        return ()
    syntax = spot.syntax
    load = load_of(syntax, spot.node.value)
    starts, limits = _numbers(details.param("start_indices")), _numbers(details.param("limit_indices"))
    strides = _numbers(details.param("strides"))
    editor = Editor(spot.path, syntax)
    ds = editor.spell(f"{PALLAS[0]}.ds", spot.node, PALLAS)
    if load is None or ds is None or not len(starts) == len(limits) == len(strides):
        return ()
    index = spot.node.slice
    if any(not isinstance(e, ast.Slice) for e in (index.elts if isinstance(index, ast.Tuple) else [index])):
        return ()
    parts = []
    for start, limit, stride in zip(starts, limits, strides, strict=True):
        parts.append(f"{start}:{limit}" if stride == 1 else f"{ds}({start}, {-(-(limit - start) // stride)}, {stride})")
    text = f"{syntax.source(load.ref)}[{', '.join(parts)}]{load.suffix}"
    editor.replace(spot.node, text)
    safety = Safety.SUGGESTED if is_stored_to(syntax, load.ref) else Safety.SAFE
    return (Fix(f"Read `{text}` from the ref", editor.edits(), safety),)


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.strip("()").split(",") if n.strip().lstrip("-").isdigit()]


_ROWS = (
    Row(
        _LOWERING,
        ("_canonicalize_transforms_to_indexer",),
        "`{source}` indexes {ref} with an array, which a TPU cannot: index it with one scalar at a time (from SMEM or "
        "scalar prefetch), in a loop.",
        "int indexing",
    ),
    Row(
        _LOWERING,
        ("_index_to_start_size_stride",),
        "`{source}` indexes with an array, which a TPU cannot: use scalars and slices (`pl.ds(start, size)`).",
        "slice indexing",
    ),
    Row(
        _LOWERING,
        ("_slice_memref",),
        "`{source}` takes a part of a strided view of {ref}: strides are possible in the last index only. Put both "
        "indices together in one.",
        "Strided",
    ),
    Row(
        _LOWERING,
        _VERIFY,
        "`{source}` takes every other element of a loaded value, which a TPU cannot: read it from the ref "
        "with a stride, `x_ref[pl.ds(start, size, stride)]`.",
        "extract_strided_slice' op expected strides",
        fixes=_strided_load,
    ),
    Row(
        _LOWERING,
        ("_bitcast_memref",),
        "`{source}` reads {ref} as elements of another width, which needs at least two dimensions with none "
        "of the last two indexed away.",
    ),
    Row(
        _LOWERING,
        ("_reshape_memref",),
        "`{source}` reshapes {ref} to another number of elements: {what}.",
        r"different number of elements: (?P<what>.*)",
    ),
    Row(
        _LOWERING,
        ("_reshape_memref",),
        "`{source}` reshapes {ref}, which needs at least two dimensions with none of the last two indexed away.",
    ),
    Row(
        _LOWERING,
        ("_transform_ref",),
        "`{source}` gives a hint on hazards for {ref}, which does not lie in VMEM: leave it out.",
        "Hazard",
    ),
    Row(
        _LOWERING,
        ("_transform_ref", "_slice_shared_memref"),
        "`{source}` takes a view of {ref} that a TPU kernel cannot: index it once, with scalars and slices.",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
