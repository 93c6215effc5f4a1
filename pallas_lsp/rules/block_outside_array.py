"""
## What it does
Finds blocks that lie outside of their array: index maps that return offsets in elements, run past the end, or go
below zero, and grids with more steps than there are blocks.

## Why it is wrong
An index map returns the number of a block, not an offset: block `i` starts at element `i * block_size`. A block that
starts past the end of the array (or before its start) is memory of something else: a TPU stops the program, a GPU
reads or overwrites what happens to be there.

## Example
```python
pl.BlockSpec((128, n), lambda i: (i * 128, 0))
```

## Use instead
```python
pl.BlockSpec((128, n), lambda i: (i, 0))
```

## Fix safety
Taking out the factor of the block size is safe. A smaller grid and a clamped index are suggestions.

## Applies to
TPU, Triton and kernels that name no backend; jax 0.10, 0.11 and 0.12.

## Source
Index maps evaluated for each step of the grid; jax itself looks at them only in its TPU interpreter.
"""

from __future__ import annotations

import ast
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Related, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.block_sizes import block_of
from pallas_lsp.rules.shared.findings import safe, suggested
from pallas_lsp.rules.shared.grid_sizes import blocks_of, fitted
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import NUMPY, checked, grid_element, map_element, narrow, silent_finding
from pallas_lsp.rules.shared.wording import shape_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "block-outside-array"):
        return None
    facts = fault.facts
    dimension, axis = int(facts["dimension"]), facts.get("axis")
    number, size = facts["at"][dimension], facts["block"][dimension]
    length, needed = facts["shape"][dimension], facts["needed"]
    element = map_element(fault, context, facts, dimension)
    grid = grid_element(fault, context, axis) if axis is not None else None
    block = block_of(fault, context, facts["role"], facts["index"])
    place = grid or element or (block.spot if block is not None else None)
    launch = launch_of(fault, context)
    where = place.location if place is not None else launch.name if launch is not None else context.locate(fault)
    step = shape_text(facts["step"])
    what = f"{'input' if facts['role'] == 'inputs' else 'output'} {facts['index']}"
    text = (
        f"In step {step} of the grid this is block {number} of {what} in dimension {dimension}, which starts at "
        f"element {number * size}, but the array has {length} there: {blocks_of(needed, size)}."
    )
    if facts["elements"]:
        text += f" An index map returns block numbers, not offsets: the block size {size} is multiplied in by Pallas."
    if grid is not None:
        text = (
            f"`{short(grid.source, 40)}` is {facts['grid'][axis]} steps, but {what} has {blocks_of(needed, size)} in "
            f"dimension {dimension}: step {step} is at block {number}, past the end of {length} elements."
        )
    related = (
        [Related(narrow(block.spot), f"Blocks of {size}.")] if block is not None and place is not block.spot else []
    )
    fixes = [_blocks(element, block, dimension, size)] if facts["elements"] and grid is None else []
    if grid is not None:
        fixes.append(fitted(grid, needed))
    elif not facts["elements"]:
        fixes.append(_clamped(element, needed, number))
    return silent_finding(__name__, fault, context, where, text, related, fixes, Severity.ERROR)


def _blocks(element: Spot | None, block: Any, dimension: int, size: int) -> Fix | None:
    """``i * BLOCK`` made ``i``: the factor that is the block's own size goes."""
    if element is None or not isinstance(element.node, ast.BinOp) or not isinstance(element.node.op, ast.Mult):
        return None
    syntax = element.syntax
    sizes = block.sizes() if block is not None else None
    own = sizes[1][dimension] if sizes is not None and dimension < len(sizes[1]) else None
    for factor, rest in ((element.node.right, element.node.left), (element.node.left, element.node.right)):
        value = syntax.value(factor)
        same = own is not None and syntax.source(own) == syntax.source(factor)
        if same or (isinstance(value, ast.Constant) and value.value == size):
            editor = Editor(element.path, syntax)
            editor.replace(element.node, syntax.source(rest))
            return safe(f"Return the number of the block: `{short(syntax.source(rest), 40)}`", editor)
    return None


def _clamped(element: Spot | None, needed: int, number: int) -> Fix | None:
    if element is None:
        return None
    editor = Editor(element.path, element.syntax)
    function, bound = ("minimum", needed - 1) if number >= 0 else ("maximum", 0)
    name = editor.spell(f"jax.numpy.{function}", element.node, NUMPY)
    if name is None:
        return None
    editor.replace(element.node, f"{name}({element.source}, {bound})")
    return suggested(f"Stop at block {bound}: `{name}(...)`", editor)
