"""
## What it does
Finds `x.at[...].set(...)` and the like on arrays whose result nothing uses.

## Why it is wrong
jax's arrays do not change: `x.at[i].set(v)` returns a new array and leaves `x` as it is. Only a ref is changed in
place.

## Example
```python
acc = jnp.zeros((8, 128))
acc.at[0].set(x_ref[0])
```

## Use instead
```python
acc = acc.at[0].set(x_ref[0])
```

## Fix safety
Giving the result the array's name is safe.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`jax.numpy.ndarray.at` in jax's documentation. The rule reads the text; names that may stand for a ref are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Location, Severity, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("primitives",)

_UPDATES = frozenset({"set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply"})
_ARRAYS = ("jax.numpy.", "jax.lax.", "jax.nn.")


def judge(fault: Fault, context: Context) -> Finding | None:
    """Nothing that jax raises: it is found by reading."""
    del fault, context
    return None


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    del context
    if "pallas" not in syntax.text:
        return
    for statement in syntax.nodes:
        array = _updated(statement.value) if isinstance(statement, ast.Expr) else None
        if array is None or not isinstance(statement, ast.Expr) or not _is_array(syntax, array):
            continue
        editor = Editor(path, syntax)
        editor.insert(syntax.span(statement)[0], f"{array.id} = ")
        fix = safe(f"Keep the result: `{array.id} = ...`", editor)
        yield Finding(
            rule_name(__name__),
            Location(path, syntax.range(statement.value)),
            f"This returns a changed copy, which nothing uses: `{array.id}` stays as it is.",
            Severity.WARNING,
            stage=Stage.READ,
            fixes=(fix,) if fix is not None else (),
        )


def _updated(call: ast.expr) -> ast.Name | None:
    """The ``x`` of ``x.at[...].set(...)``."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _UPDATES:
        return None
    view = call.func.value
    if not isinstance(view, ast.Subscript) or not isinstance(view.value, ast.Attribute) or view.value.attr != "at":
        return None
    return view.value.value if isinstance(view.value.value, ast.Name) else None


def _is_array(syntax: Syntax, name: ast.Name) -> bool:
    """Whether each value that the function around gives the name is surely an array, and no ref."""
    scope = syntax.scope(name)
    bindings = scope.bindings.get(name.id, [])
    return bool(bindings) and all(each.value is not None and _makes_array(syntax, each.value) for each in bindings)


def _makes_array(syntax: Syntax, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        method = isinstance(value.func, ast.Attribute) and value.func.attr in ("astype", "reshape", *_UPDATES)
        return method or (syntax.dotted(value.func) or "").startswith(_ARRAYS)
    if isinstance(value, ast.BinOp):
        return True
    read = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and value.slice.value is Ellipsis
    return read and isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name)  # ``ref.at[...]`` is a ref
