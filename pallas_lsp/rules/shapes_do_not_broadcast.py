"""
## What it does
Finds operations on arrays of shapes that do not fit each other, and `jnp.broadcast_to` to a shape that does not fit.

## Why it is wrong
Shapes are compared from the last dimension on: each pair of sizes must be equal, or one of them 1. One value a row, the
result of a reduction, has the shape `(8,)`; beside `(8, 128)` its 8 meets the 128. Functions of `jax.lax` do not even
add dimensions.

## Example
```python
x = x_ref[...]                            # (8, 128)
o_ref[...] = x / jnp.sum(x, axis=-1)      # (8,)
```

## Use instead
```python
o_ref[...] = x / jnp.sum(x, axis=-1, keepdims=True)
```

## Fix safety
Keeping or adding the dimension that is missing is safe where there is one way to do it; transposing is a suggestion.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`broadcast_shapes`, `_try_broadcast_shapes`, `_select_shape_rule` and `broadcast_to` in `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.shapes import Shape, numbers, shape_of
from pallas_lsp.rules.shared.stores import Store, parenthesised, with_other_ones
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import and_list, shape_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("primitives",)
_LAX = "jax/_src/lax/lax.py"
_FUNCTIONS = (
    "_broadcast_shapes_uncached",
    "broadcast_shapes",
    "_try_broadcast_shapes",
    "_select_shape_rule",
    "broadcast_to",
)
SITES = tuple((_LAX, name) for name in _FUNCTIONS if name != "broadcast_shapes")
_SHAPES = re.compile(r"\([\d, ]*\)")
_REQUESTED = re.compile(r"input type=\w+\[([\d,]*)\] and requested type=\w+\[([\d,]*)\]")


def judge(fault: Fault, context: Context) -> Finding | None:
    line = line_of(fault, context)
    if fault.capture is None or line is None or not raised_in(fault, _LAX, *_FUNCTIONS):
        return None
    requested = _REQUESTED.search(fault.message)
    if requested is not None:
        have, want = numbers(requested[1]), numbers(requested[2])
        value = line.syntax.argument(line.node, 0) if isinstance(line.node, ast.Call) else None
        name = f"`{short(line.syntax.source(value), 40)}`" if value is not None else "The value"
        message = (
            f"{name} has the shape {shape_text(have)}, which does not broadcast to {shape_text(want)}: shapes are "
            "compared from the last dimension on, and each of its sizes must be the same or 1."
        )
        fixes = _fitted(line, value, have, want) if value is not None else ()
        return finding(__name__, fault, context, line.location, message, (), fixes)
    operands = [(node, shape) for node, shape in _operands(line, fault.message) if shape]
    if len(operands) < 2:
        return None
    named = [f"`{short(line.syntax.source(node), 40)}` has the shape {shape_text(shape)}" for node, shape in operands]
    ranks = {len(shape) for _, shape in operands}
    if "select cases" in fault.message:
        message = f"{and_list(named)}, but the cases of a `jax.lax.select` must have the same. `jnp.where` broadcasts."
        return finding(__name__, fault, context, line.location, message)
    if "same number of dimensions" in fault.message:
        reason = "functions of `jax.lax` add no dimensions, both need the same number."
    elif len(ranks) > 1:
        reason = "shapes are compared from the last dimension on, and each pair of sizes must be equal or have a 1."
    else:
        reason = "each pair of sizes must be equal or have a 1."
    message = f"{and_list(named)}: {reason}"
    return finding(__name__, fault, context, line.location, message, (), _fixes(line, operands))


def _operands(line: Line, message: str) -> list[tuple[ast.expr, list[int]]]:
    """What is put together, with the shapes: those that jax tells in the same order, else those that are known."""
    node, statement = line.node, line.statement
    if isinstance(node, ast.BinOp):
        found = [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        found = [node.left, node.comparators[0]]
    elif isinstance(statement, ast.AugAssign) and (node is statement.target or node is statement.value):
        found = [statement.target, statement.value]
    elif isinstance(node, ast.Call) and not any(isinstance(each, ast.Starred) for each in node.args):
        found = list(node.args)
    else:
        return []
    told = [numbers(text) for text in _SHAPES.findall(message)]
    own = [shape_of(line, each) for each in found]
    if len(told) == len(found) and all(known in (None, shape) for known, shape in zip(own, told, strict=True)):
        return list(zip(found, told, strict=True))
    return [(each, shape) for each, shape in zip(found, own, strict=True) if shape is not None]


def _fixes(line: Line, operands: Sequence[tuple[ast.expr, Shape]]) -> Iterator[Fix | None]:
    widest = max((shape for _, shape in operands), key=len)
    for node, shape in operands:
        if _broadcasts(shape, widest):
            continue
        yield from _fitted(line, node, shape, widest)


def _fitted(line: Line, node: ast.expr, have: Shape, want: Shape) -> Iterator[Fix | None]:
    """Another form of one operand, so that it broadcasts."""
    if len(have) < len(want):
        ways = {
            tuple(size if kept else 1 for size, kept in zip(want, mask, strict=True)) for mask in _masks(have, want)
        }
        if len(ways) == 1:
            statement = line.statement
            if statement is not None:
                yield from with_other_ones(Store(line, node, node, statement), list(have), list(next(iter(ways))))
    elif list(have) == list(want)[::-1] and len(have) == 2:
        editor = Editor(line.path, line.syntax)
        editor.replace(node, f"{parenthesised(line.syntax, node)}.T")
        yield suggested(f"Transpose `{short(line.syntax.source(node), 30)}`", editor)


def _masks(have: Shape, want: Shape) -> Iterator[tuple[bool, ...]]:
    """The ways in which the sizes of one shape are, in order, among those of another."""
    if not have:
        yield (False,) * len(want)
    elif want:
        for rest in _masks(have, want[1:]):
            yield (False, *rest)
        if have[0] == want[0]:
            for rest in _masks(have[1:], want[1:]):
                yield (True, *rest)


def _broadcasts(have: Shape, want: Shape) -> bool:
    return all(a in (b, 1) or b == 1 for a, b in zip(reversed(have), reversed(want), strict=False))
