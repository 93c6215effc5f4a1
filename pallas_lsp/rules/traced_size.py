"""
## What it does
Finds sizes that a kernel computes: in shapes, in `jnp.arange`, as the size of `pl.ds`.

## Why it is wrong
Shapes are part of the program: they must be numbers while the kernel is traced. What is traced can say where a block
starts, not how large it is.

## Example
```python
n = len_ref[0]
x = x_ref[pl.ds(0, n)]
mask = jnp.arange(n)
```

## Use instead
```python
x = x_ref[pl.ds(0, BLOCK)]
mask = jnp.arange(BLOCK) < n      # leaves out what lies past n
```

## Fix safety
This rule offers no fix.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`canonicalize_shape` and `concrete_or_error` in `jax/_src/core.py`; `Slice` with a traced size, "DShapedArray".
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.user_line import Line, line_of

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
SPECIFICITY = 45

_SIZED = frozenset(
    f"jax.numpy.{name}" for name in ("zeros", "ones", "full", "empty", "arange", "linspace", "eye", "broadcast_to")
) | {"jax.lax.broadcasted_iota", "jax.lax.iota", "jax.lax.full"}
_DS = frozenset({"jax.experimental.pallas.ds", "jax.experimental.pallas.dslice"})


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.capture is None:
        return None
    shapes = "Shapes must be 1D sequences of concrete values" in fault.message
    by_size = "DShapedArray" in fault.message or "is_dynamic_size" in fault.message
    bound = passed_through(fault, "jax/_src/core.py", "concrete_or_error")
    line = line_of(fault, context)
    if line is None or not (shapes or by_size or bound):
        return None
    if bound and not (isinstance(line.node, ast.Call) and line.syntax.dotted(line.node.func) in _SIZED):
        return None
    mark = _size(line)
    message = (
        f"`{short(line.syntax.source(mark), 40)}` is a size that the kernel computes, but sizes must be numbers while "
        "the kernel is traced. Use the largest size and leave out the rest with a mask."
    )
    return finding(__name__, fault, context, line.at(mark), message)


def _size(line: Line) -> ast.expr:
    """The traced part of a shape, or the size of a ``pl.ds``."""
    for call in ast.walk(line.node):
        if isinstance(call, ast.Call) and line.syntax.dotted(call.func) in _DS:
            size = line.syntax.argument(call, 1, "size")
            if size is not None and _traced(line, size):
                return size
    if isinstance(line.node, ast.Call):
        for argument in (*line.node.args, *(k.value for k in line.node.keywords)):
            parts = argument.elts if isinstance(argument, ast.Tuple | ast.List) else [argument]
            for part in parts:
                if _traced(line, part):
                    return part
    return line.node


def _traced(line: Line, node: ast.expr) -> bool:
    return any(line.kind(part) == "traced" for part in ast.walk(node)) or any(
        isinstance(part, ast.Call) and (line.syntax.dotted(part.func) or "").endswith(("program_id", "axis_index"))
        for part in ast.walk(node)
    )
