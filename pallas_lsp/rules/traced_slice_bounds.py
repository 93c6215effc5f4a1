"""
## What it does
Finds Python slices, `x_ref[a:b]`, whose bounds a kernel computes.

## Why it is wrong
The size of a slice must be known while the kernel is traced; from two traced bounds it is not. `pl.ds(start, size)`
has a start that may be traced and a size that is a number.

## Example
```python
x = x_ref[i * 64:(i + 1) * 64]
```

## Use instead
```python
x = x_ref[pl.ds(i * 64, 64)]
```

A value that was read already is not sliced at a traced position by most backends: slice the ref.

## Fix safety
The fix is a suggestion: the size is derived from the two bounds.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`Slice.from_slice` and `canonicalize_slice` for refs; `jax/_src/numpy/indexing.py`, "Array slice indices must have
static start/stop/step", for values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("control flow", "refs")
SPECIFICITY = 60

_DS = "jax.experimental.pallas.ds"
_PALLAS = ("jax.experimental.pallas", "pl")


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.capture is None or not _about_slices(fault):
        return None
    line = line_of(fault, context)
    if line is None or not isinstance(line.node, ast.Subscript):
        return None
    node = line.node
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    slices = [p for p in parts if isinstance(p, ast.Slice) and not _static(line, p)]
    if not slices:
        return None
    message = (
        f"The bounds of the slice `{short(line.syntax.source(slices[0]), 40)}` are computed in the kernel, so its "
        "size is not known while it is traced. Give start and size: `pl.ds(start, size)`."
    )
    return finding(__name__, fault, context, line.at(slices[0]), message, (), _fixes(line, node, slices))


def _about_slices(fault: Fault) -> bool:
    if passed_through(fault, "jax/_src/numpy/indexing.py", "validate_slices"):
        return True
    if not fault.exception.endswith(("ConversionError", "ConcretizationTypeError")):
        return False
    return any(
        passed_through(fault, file, "from_slice", "canonicalize_slice")
        for file in ("jax/_src/indexing.py", "jax/_src/state/indexing.py", "jax/_src/core.py")
    )


def _static(line: Line, part: ast.Slice) -> bool:
    for bound in (part.lower, part.upper, part.step):
        for node in ast.walk(bound) if bound is not None else ():
            if isinstance(node, ast.Call | ast.Subscript) or line.kind(node) == "traced":
                return False
    return True


def _fixes(line: Line, node: ast.Subscript, slices: list[ast.Slice]) -> Iterator[Fix | None]:
    editor = Editor(line.path, line.syntax)
    function = editor.spell(_DS, node, _PALLAS)
    if function is None:
        return
    shown = ""
    for part in (*slices, *_others(line, slices)):
        size = _size(line.syntax, part)
        if size is None or part.step is not None:
            if part in slices:
                return
            continue
        start = line.syntax.source(part.lower) if part.lower is not None else "0"
        text = f"{function}({start}, {size})"
        shown = shown or text
        editor.replace(part, text)
    base = node.value
    value = line.syntax.value(base) if isinstance(base, ast.Name) else base
    if line.kind(base) != "ref" and isinstance(value, ast.Subscript) and line.kind(value.value) == "ref":
        whole = isinstance(value.slice, ast.Constant) and value.slice.value is Ellipsis
        if whole:
            editor.replace(base, line.syntax.source(value.value))
    yield suggested(f"Slice with `{short(shown, 50)}`", editor)


def _others(line: Line, slices: list[ast.Slice]) -> Iterator[ast.Slice]:
    """The other slices with traced bounds in the same statement, which jax would refuse next."""
    statement = line.statement
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Subscript) and line.kind(node.value) in ("ref", "traced"):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            yield from (p for p in parts if isinstance(p, ast.Slice) and p not in slices and not _static(line, p))


def _size(syntax: Syntax, part: ast.Slice) -> str | None:
    """``upper - lower`` as source, where the forms of the two bounds tell."""
    lower, upper = part.lower, part.upper
    if upper is None:
        return None
    if lower is None:
        return None
    low = syntax.source(lower)
    # a : a + n
    if isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Add):
        if syntax.source(upper.left) == low:
            return syntax.source(upper.right)
        if syntax.source(upper.right) == low:
            return syntax.source(upper.left)
    # i * n : (i + 1) * n, in either order
    if not (isinstance(lower, ast.BinOp) and isinstance(upper, ast.BinOp)):
        return None
    if not (isinstance(lower.op, ast.Mult) and isinstance(upper.op, ast.Mult)):
        return None
    for factor, index in ((lower.right, lower.left), (lower.left, lower.right)):
        for other, more in ((upper.right, upper.left), (upper.left, upper.right)):
            if syntax.source(factor) == syntax.source(other) and _one_more(syntax, more, index):
                return syntax.source(factor)
    return None


def _one_more(syntax: Syntax, node: ast.expr, index: ast.expr) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    for one, rest in ((node.right, node.left), (node.left, node.right)):
        if isinstance(one, ast.Constant) and one.value == 1 and syntax.source(rest) == syntax.source(index):
            return True
    return False
