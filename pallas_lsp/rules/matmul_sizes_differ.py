"""
## What it does
Finds matrix products, and `jnp.einsum`, of arrays whose contracted dimensions have different sizes.

## Why it is wrong
A product sums over the last dimension of its left operand and the second-last of its right one: they must be equal.
The index of a `jnp.einsum` stands for one size wherever it is.

## Example
```python
s = jnp.dot(q_ref[...], k_ref[...])       # (64, 128) and (32, 128)
```

## Use instead
```python
s = jnp.dot(q_ref[...], k_ref[...].T)
```

## Fix safety
Transposing an operand is a suggestion.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_dot_general_shape_rule` in `jax/_src/lax/lax.py`, "requires contracting dimensions to have the same shape"; "Size of
label" in opt_einsum.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.shapes import numbers, shape_of
from pallas_lsp.rules.shared.stores import parenthesised
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import and_list, shape_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("primitives",)
SPECIFICITY = 60
SITES = (("jax/_src/lax/lax.py", "_dot_general_shape_rule"),)

_SIZES = re.compile(r"contracting dimensions to have the same shape, got (\([\d, ]*\)) and (\([\d, ]*\))")
_LABEL = re.compile(
    r"Size of label '(?P<label>\w)' for operand \d+ \((?P<size>\d+)\) does not match "
    r"previous terms \((?P<before>\d+)\)"
)


def judge(fault: Fault, context: Context) -> Finding | None:
    line = line_of(fault, context)
    if fault.capture is None or line is None:
        return None
    label = _LABEL.search(fault.message)
    if label is not None and passed_through(fault, "jax/_src/numpy/einsum.py", "einsum"):
        return _einsum(fault, context, line, label)
    sizes = _SIZES.search(fault.message)
    if sizes is None or not raised_in(fault, "jax/_src/lax/lax.py", "_dot_general_shape_rule"):
        return None
    left, right = (" and ".join(map(str, numbers(each))) for each in sizes.groups())
    operands = _operands(line)
    if operands is None:
        message = f"This product sums over dimensions of different sizes: {left} and {right}."
        return finding(__name__, fault, context, line.location, message)
    message = (
        f"This product sums over the {left} {_of(line, operands[0])} and the {right} {_of(line, operands[1])}, which "
        "must be the same size."
    )
    return finding(__name__, fault, context, line.location, message, (), _fixes(line, *operands))


def _einsum(fault: Fault, context: Context, line: Line, label: re.Match[str]) -> Finding:
    known = _sizes_of_index(line, label["label"])
    where = f"{label['size']} in one operand and {label['before']} in another"
    if len(set(known.values())) > 1:
        where = and_list([f"{size} in `{name}`" for name, size in known.items()])
    message = f"The index `{label['label']}` stands for one size, but it is {where}."
    return finding(__name__, fault, context, line.location, message)


def _sizes_of_index(line: Line, label: str) -> dict[str, int]:
    """The size of an index in each operand of a ``jnp.einsum`` whose shape is known."""
    call = line.node
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
        return {}
    terms = str(call.args[0].value).partition("->")[0].replace(" ", "").split(",")
    found = {}
    for term, node in zip(terms, call.args[1:], strict=False):
        shape = shape_of(line, node)
        if shape is not None and label in term and len(shape) == len(term):
            found[short(line.syntax.source(node), 40)] = shape[term.index(label)]
    return found


def _operands(line: Line) -> tuple[ast.expr, ast.expr] | None:
    node = line.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.Call) and len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        name = (line.syntax.dotted(node.func) or "").rpartition(".")[2]
        if name in ("dot", "matmul"):
            return node.args[0], node.args[1]
    return None


def _of(line: Line, node: ast.expr) -> str:
    shape = shape_of(line, node)
    return f"of `{short(line.syntax.source(node), 40)}`" + (f" {shape_text(shape)}" if shape is not None else "")


def _fixes(line: Line, left: ast.expr, right: ast.expr) -> Iterator[Fix | None]:
    one, other = shape_of(line, left), shape_of(line, right)
    if one is None or other is None or len(one) != 2 or len(other) != 2:
        return
    for node, fits in ((right, one[1] == other[1]), (left, one[0] == other[0])):
        if fits:
            editor = Editor(line.path, line.syntax)
            if isinstance(node, ast.Attribute) and node.attr == "T":
                editor.replace(node, line.syntax.source(node.value))
                yield suggested(f"Do not transpose `{short(line.syntax.source(node.value), 30)}`", editor)
            else:
                editor.replace(node, f"{parenthesised(line.syntax, node)}.T")
                yield suggested(f"Transpose `{short(line.syntax.source(node), 30)}`", editor)
