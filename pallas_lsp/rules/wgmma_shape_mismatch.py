"""
## What it does
Finds calls of `plgpu.wgmma` whose accumulator and operands do not fit together as (m, n), (m, k) and (k, n).

## Why it is wrong
`plgpu.wgmma(acc, a, b)` adds `a @ b` to the accumulator. `a` has to have as many columns as `b` has rows, and the
accumulator the rows of `a` and the columns of `b`.

## Example
```python
# a_smem is (64, 64), b_smem is stored as (n, k) = (128, 64), acc is (64, 128)
plgpu.wgmma(acc, a_smem, b_smem)
```

## Use instead
```python
plgpu.wgmma(acc, a_smem, b_smem.T)
```

## Fix safety
The fixes are suggestions: transposing an operand fits the shapes, and so does another accumulator; which one was
meant the shapes do not tell.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`wgmma` in `jax/_src/pallas/mosaic_gpu/primitives.py`, "Incompatible shapes for matrix multiplication"; `wgmma` in
`jax/experimental/mosaic/gpu/wgmma.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import Mma, mma_of
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, Operand, argument, place, quoted, shape_text
from pallas_lsp.rules.shared.gpu_sizes import shape_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("wgmma",)
SITES = ((PRIMITIVES, "wgmma"), (f"{MGPU}wgmma.py", "wgmma"), (f"{MGPU}wgmma.py", "wgmma_m64"))


def judge(fault: Fault, context: Context) -> Finding | None:
    mma = mma_of(fault, "wgmma")
    if mma is None or mma.acc.space not in ("regs", "1"):
        return None
    names = {n: quoted(context, fault, n, d) for n, d in (("acc", "the accumulator"), ("a", "a"), ("b", "b"))}
    if not mma.two_dimensional:
        return _rank(fault, context, mma, names)
    m, n, am, ak, bk, bn = mma.mnk
    if (m, n, ak) == (am, bn, bk):
        return None
    if ak != bk:
        wrong = "a" if am != m and bn == n else "b"
        text = (
            f"{names['a']} has {ak} columns, but {names['b']} has {bk} rows: `wgmma` multiplies (m, k) by (k, n), "
            f"here {shape_text(mma.a.shape)} by {shape_text(mma.b.shape)} into {shape_text(mma.acc.shape)}."
        )
    else:
        wrong = "acc"
        text = (
            f"{names['acc']} is {shape_text(mma.acc.shape)}, but {names['a']} @ {names['b']} is "
            f"{shape_text((am, bn))}: {shape_text(mma.a.shape)} by {shape_text(mma.b.shape)}."
        )
    related = [r for ref in (mma.acc, mma.a, mma.b) for r in _made(context, ref, names)]
    return finding(__name__, fault, context, place(context, fault, wrong), text, related, _fixes(fault, context, mma))


def _made(context: Context, ref: Operand, names: dict[str, str]) -> tuple[Related, ...]:
    return ref.related(context, f"{names[ref.name]} is allocated here, as {shape_text(ref.shape)}.")


def _rank(fault: Fault, context: Context, mma: Mma, names: dict[str, str]) -> Finding | None:
    for ref in (mma.acc, mma.a, mma.b):
        if ref.shape is not None and len(ref.shape) != 2:
            text = (
                f"{names[ref.name]} is {shape_text(ref.shape)}, but `wgmma` takes matrices: an accumulator (m, n), "
                "`a` (m, k) and `b` (k, n), each with two dimensions."
            )
            related = ref.related(context, f"{names[ref.name]} is allocated here.")
            return finding(__name__, fault, context, place(context, fault, ref.name), text, related)
    return None


def _fixes(fault: Fault, context: Context, mma: Mma) -> Iterator[Fix | None]:
    m, n, am, ak, bk, bn = mma.mnk
    for name, fits in (("b", (am, bk, ak) == (m, n, bn)), ("a", (ak, bn, am) == (m, n, bk))):
        spot = argument(context, fault, name)
        if fits and spot is not None:
            edits = Editor(spot.path, spot.syntax)
            edits.replace(spot.node, f"{_atom(spot.source, spot.node)}.T")
            yield suggested(f"Transpose `{name}`: (n, k) is read as (k, n)" if name == "b" else "Transpose `a`", edits)
    if ak == bk and mma.acc.allocation is not None and mma.acc.shape == mma.acc.allocation.shape:
        made = mma.acc.allocation.spot(context)
        shape = shape_of(made) if made is not None else None
        if made is not None and shape is not None:
            edits = Editor(made.path, made.syntax)
            edits.replace(shape, f"({am}, {bn})")
            yield suggested(f"Give the accumulator the shape ({am}, {bn})", edits)


def _atom(source: str, node: ast.expr) -> str:
    return source if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({source})"
