"""
## What it does
Finds reductions and matrix products over a block whose last copy reaches past the end of its array, with no mask.

## Why it is wrong
Where a dimension is no multiple of the block size, the last block is partial, and what it holds past the end of the
array is undefined. A sum, a maximum or a product takes it in with the data. Elementwise work does not mind, for what
lies past the end is not written back.

## Example
```python
# 1000 rows in blocks of 128: the last block has 104 rows and 24 of garbage
o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)
```

## Use instead
```python
row = pl.program_id(0) * 128 + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
o_ref[...] += jnp.sum(jnp.where(row < 1000, x_ref[...], 0.0), axis=0, keepdims=True)
```

## Fix safety
A suggestion: the mask has the sizes of this launch as numbers.

## Applies to
TPU, Triton and kernels that name no backend; jax 0.10, 0.11 and 0.12.

## Source
The programs of kernels and their index maps for each step of the grid; jax does not look at it in any version.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.block_sizes import block_of
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import (
    NUMPY,
    PALLAS,
    checked,
    narrow,
    parameter_at,
    silent_finding,
    spot_of,
)
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)
_WORDS = {
    "reduce_sum": "summed up",
    "reduce_max": "taken into the maximum",
    "reduce_min": "taken into the minimum",
    "reduce_prod": "multiplied in",
    "dot_general": "multiplied and summed up",
}
_NEUTRAL = {"reduce_sum": "0", "dot_general": "0", "reduce_prod": "1"}
_INFINITE = {"reduce_max": "-", "argmax": "-", "reduce_min": "", "argmin": ""}


def judge(fault: Fault, context: Context) -> Finding | None:
    parts = [part for part in fault.facts.get("parts") or () if isinstance(part, Mapping)]
    if not checked(fault, "reduction-over-padding") or not parts:
        return None
    spot = spot_of(fault, context)
    where = narrow(spot) if spot is not None else context.locate(fault)
    part, reduction = parts[0], str(fault.facts.get("reduction"))
    name = f"`{short(context.source(where), 50)}`" if spot is not None else "This"
    past = part["size"] - part["rest"]
    text = (
        f"{name} reduces whole blocks of {part['size']}, but dimension {part['dimension']} has {part['length']} "
        f"elements: the last block holds {part['rest']} of them and {past} undefined ones, which are "
        f"{_word(reduction)} too. Mask them with `jnp.where` first."
    )
    related = []
    block = block_of(fault, context, part["role"], part["index"])
    if block is not None:
        related.append(Related(narrow(block.spot), f"{part['length']} is no multiple of this block's {part['size']}."))
    fix = _fix(fault, context, spot, parts, reduction) if spot is not None else None
    return silent_finding(__name__, fault, context, where, text, related, [fix])


def _word(reduction: str) -> str:
    return _WORDS.get(reduction, "looked at")


def _fix(fault: Fault, context: Context, spot: Spot, parts: list[Mapping[str, Any]], reduction: str) -> Fix | None:
    """``jnp.where(index < length, x_ref[...], neutral)`` around each read inside the expression."""
    editor = Editor(spot.path, spot.syntax)
    for part in parts:
        read = _read(fault, context, spot, part)
        neutral = _neutral(editor, spot, part, reduction)
        if read is None or neutral is None or part.get("grid_axis") is None:
            return None
        mask = _mask(editor, read, part)
        where = editor.spell("jax.numpy.where", read.node, NUMPY)
        if mask is None or where is None:
            return None
        editor.replace(read.node, f"{where}({mask}, {read.source}, {neutral})")
    return suggested(f"Mask what is past element {parts[0]['length'] - 1}", editor)


def _mask(editor: Editor, read: Spot, part: Mapping[str, Any]) -> str | None:
    program_id = editor.spell(f"{PALLAS[0]}.program_id", read.node, PALLAS)
    iota = editor.spell("jax.lax.broadcasted_iota", read.node, ("jax.lax", "lax"))
    int32 = editor.spell("jax.numpy.int32", read.node, NUMPY)
    if program_id is None or iota is None or int32 is None:
        return None
    assert isinstance(read.node, ast.Subscript)
    ref = read.syntax.source(read.node.value)
    start = f"{program_id}({part['grid_axis']}) * {part['size']}"
    return f"{start} + {iota}({int32}, {ref}.shape, {part['axis']}) < {part['length']}"


def _neutral(editor: Editor, spot: Spot, part: Mapping[str, Any], reduction: str) -> str | None:
    if reduction in _NEUTRAL:
        return _NEUTRAL[reduction]
    if reduction not in _INFINITE or not str(part["array"]).startswith(("f", "bf")):
        return None
    infinity = editor.spell("jax.numpy.inf", spot.node, NUMPY)
    return f"{_INFINITE[reduction]}{infinity}" if infinity is not None else None


def _read(fault: Fault, context: Context, spot: Spot, part: Mapping[str, Any]) -> Spot | None:
    """The one read of the operand's ref in the expression, or in the assignment of a name that is used there."""
    found = parameter_at(fault, context, part)
    if found is None or found[0] != spot.path:
        return None
    syntax = spot.syntax
    reads = _loads(syntax, spot.node, found[2])
    for node in ast.walk(spot.node) if not reads else ():
        if isinstance(node, ast.Name):
            value = syntax.value(node)
            if value is not node and isinstance(value, ast.expr):
                reads += [read for read in _loads(syntax, value, found[2]) if read not in reads]
    return spot.at(reads[0]) if len(reads) == 1 else None


def _loads(syntax: Syntax, around: ast.AST, parameter: ast.arg) -> list[ast.Subscript]:
    return [
        node
        for node in ast.walk(around)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and (binding := syntax.binding(node.value)) is not None
        and binding.node is parameter
    ]
