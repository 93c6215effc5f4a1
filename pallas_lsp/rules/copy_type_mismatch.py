"""
## What it does
Finds copies between GMEM and SMEM whose two sides differ in element type or shape.

## Why it is wrong
`plgpu.copy_gmem_to_smem` and `plgpu.copy_smem_to_gmem` move bytes with the GPU's copy engine (TMA). They do not
convert, broadcast or reshape: both sides have to have the same element type and the same shape, after the slices that
are given with `.at[...]`.

## Example
```python
# x_gmem is bfloat16[128,128], x_smem float32[128,128]
plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
```

## Use instead
An allocation of the type that is copied, and a conversion where the values are used:

```python
x_smem = plgpu.SMEM((128, 128), jnp.bfloat16)
...
x = x_smem[...].astype(jnp.float32)
```

## Fix safety
The fixes give the allocation the type or shape of the other side. They are suggestions, since the rest of the kernel
may count on the old one.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_copy_gmem_to_smem_abstract_eval` and `_copy_smem_to_gmem_abstract_eval` in
`jax/_src/pallas/mosaic_gpu/primitives.py`; in jax 0.10 `LaunchContext.async_copy` in
`jax/experimental/mosaic/gpu/launch_context.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_copies import Copy, copy_of
from pallas_lsp.rules.shared.gpu_mma import dtype_argument, dtype_text
from pallas_lsp.rules.shared.gpu_operands import (
    MGPU,
    PRIMITIVES,
    Operand,
    argument,
    place,
    quoted,
    shape_text,
)
from pallas_lsp.rules.shared.gpu_sizes import shape_of
from pallas_lsp.rules.shared.places import Spot, follow
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("copies",)
SPECIFICITY = 49
SITES = (
    (PRIMITIVES, "_copy_gmem_to_smem_abstract_eval"),
    (PRIMITIVES, "_copy_smem_to_gmem_abstract_eval"),
    (f"{MGPU}launch_context.py", "LaunchContext.async_copy"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    copy = copy_of(fault)
    if copy is None or copy.src.shape is None or copy.dst.shape is None:
        return None
    if copy.gmem.space not in ("gmem", "any") or copy.smem.space != "smem" or fault.facts.get("conflict"):
        return None
    src, dst = quoted(context, fault, "src", "the source"), quoted(context, fault, "dst", "the destination")
    if copy.src.dtype != copy.dst.dtype:
        text = (
            f"{src} is {copy.src.dtype} and {dst} is {copy.dst.dtype}: a copy between GMEM and SMEM does not convert."
        )
        fixes = list(_retyped(context, fault, copy))
    elif copy.src.shape != copy.dst.shape and "partitioned" not in fault.message:
        text = (
            f"{src} is {shape_text(copy.src.shape)} and {dst} is {shape_text(copy.dst.shape)}: a copy between GMEM "
            "and SMEM needs the same shape on both sides."
        )
        fixes = list(_reshaped(context, fault, copy))
    else:
        return None
    related = _related(context, copy.smem, quoted(context, fault, _name(copy, copy.smem), "It"))
    return finding(__name__, fault, context, place(context, fault, _name(copy, copy.smem)), text, related, fixes)


def _name(copy: Copy, operand: Operand) -> str:
    return "src" if operand is copy.src else "dst"


def _related(context: Context, operand: Operand, name: str) -> tuple[Related, ...]:
    whole = operand.allocation
    text = f"{name} is allocated here"
    if whole is not None and whole.shape:
        text += f", as {operand.dtype} of {shape_text(whole.shape)}"
    return operand.related(context, f"{text}.")


def _retyped(context: Context, fault: Fault, copy: Copy) -> Iterator[Fix | None]:
    made = copy.smem.allocation.spot(context) if copy.smem.allocation is not None else None
    node = dtype_argument(made) if made is not None else None
    if made is None or node is None:
        return
    edits = Editor(made.path, made.syntax)
    new = dtype_text(edits, node, copy.gmem.dtype)
    if new is not None:
        edits.replace(node, new)
        yield suggested(f"Allocate it as {copy.gmem.dtype}", edits)
        yield _with_values_converted(context, fault, copy, made, node, new)


def _with_values_converted(
    context: Context, fault: Fault, copy: Copy, made: Spot, node: ast.expr, new: str
) -> Fix | None:
    """The allocation retyped, and its values converted: to the old type where they are read, from it where stored."""
    ref = argument(context, fault, _name(copy, copy.smem))
    frames = context.frames(fault)
    if ref is not None:
        # A helper that copies is given the ref by the code that reads and stores it.
        ref, _ = follow(context, frames, replace(ref, depth=len(frames) - 1), ())
    if ref is None or not isinstance(ref.node, ast.Name):
        return None
    editors = {spot.path: Editor(spot.path, spot.syntax) for spot in (made, ref)}
    old = dtype_text(editors[ref.path], ref.node, copy.smem.dtype)
    reads = stores = 0
    for use in ref.syntax.uses(ref.node):
        parent = ref.syntax.parent(use)
        statement = ref.syntax.statement(use)
        if isinstance(statement, ast.Assign) and parent in statement.targets and parent is not use:
            editors[ref.path].insert(ref.syntax.span(statement.value)[0], "(" if _loose(statement.value) else "")
            end = ")" if _loose(statement.value) else ""
            editors[ref.path].insert(ref.syntax.span(statement.value)[1], f"{end}.astype({new})")
            stores += 1
        if isinstance(parent, ast.Subscript) and parent.value is use and isinstance(parent.ctx, ast.Load):
            editors[ref.path].insert(ref.syntax.span(parent)[1], f".astype({old})")
            reads += 1
    if old is None or not (reads or stores):
        return None
    editors[made.path].replace(node, new)
    where = " and ".join([*(["read"] if reads else []), *(["stored to"] if stores else [])])
    return suggested(f"Allocate it as {copy.gmem.dtype}, and convert its values where it is {where}", *editors.values())


def _loose(value: ast.expr) -> bool:
    return not isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)


def _reshaped(context: Context, fault: Fault, copy: Copy) -> Iterator[Fix | None]:
    made = copy.smem.allocation.spot(context) if copy.smem.allocation is not None else None
    shape = shape_of(made) if made is not None else None
    gmem = argument(context, fault, _name(copy, copy.gmem))
    smem, whole = copy.smem, copy.smem.allocation
    entire = whole is not None and smem.shape == whole.shape
    if made is not None and shape is not None and entire:
        edits = Editor(made.path, made.syntax)
        edits.replace(shape, shape_text(copy.gmem.shape))
        yield suggested(f"Allocate it with the shape {shape_text(copy.gmem.shape)}", edits)
    yield _one_block(copy, gmem)
    fits = copy.gmem.shape is not None and smem.shape is not None and len(copy.gmem.shape) == len(smem.shape)
    if fits and gmem is not None and isinstance(gmem.node, ast.Name):
        pairs = list(zip(copy.gmem.shape or (), smem.shape or (), strict=True))
        if all(large >= small for large, small in pairs):
            parts = [":" if large == small else f":{small}" for large, small in pairs]
            while len(parts) > 1 and parts[-1] == ":":
                parts.pop()
            edits = Editor(gmem.path, gmem.syntax)
            edits.insert(gmem.syntax.span(gmem.node)[1], f".at[{', '.join(parts)}]")
            yield suggested(f"Copy the first part of that shape, `{gmem.source}.at[{', '.join(parts)}]`", edits)


def _one_block(copy: Copy, gmem: Spot | None) -> Fix | None:
    """``x.at[pl.ds(i, 1)]`` -> ``x.at[i]``, where the dimension that is one long is what is too much."""
    node = gmem.syntax.value(gmem.node) if gmem is not None else None
    if gmem is None or not isinstance(node, ast.Subscript) or tuple(copy.gmem.shape or ())[1:] != copy.smem.shape:
        return None
    index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
    given = gmem.syntax.arguments(index) if isinstance(index, ast.Call) else None
    start = given.get(0, "start") if given is not None else None
    if isinstance(index, ast.Slice):
        start = index.lower
    if start is None or (copy.gmem.shape or (0,))[0] != 1:
        return None
    edits = Editor(gmem.path, gmem.syntax)
    edits.replace(index, gmem.syntax.source(start))
    return suggested("Take that block without the dimension, by its number", edits)
