"""
## What it does
Finds conversions of values that a kernel computes into Python or NumPy values: `int(x)`, `float(x)`, `x.item()`,
`np.exp(x)`, `"{:.2f}".format(x)`, `table[i]` of a Python list or NumPy array.

## Why it is wrong
Python runs the body of a kernel once, to trace it. A value that the kernel computes is known only when it runs, so it
cannot be a Python number, a NumPy array or an index into a Python list.

## Example
```python
n = int(len_ref[0])
y = np.exp(x_ref[...])
```

## Use instead
```python
n = len_ref[0]
y = jnp.exp(x_ref[...])
```

## Fix safety
Removing a conversion that the value does not need, and calling the `jax.numpy` function of the same name, is a
suggestion: what comes after may have relied on a Python number.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`Tracer.__int__`, `__float__`, `__index__`, `__array__` and `concrete_or_error` in `jax/_src/core.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.stores import parenthesised
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import type_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
SPECIFICITY = 40

_EXCEPTIONS = (
    "TracerArrayConversionError",
    "TracerIntegerConversionError",
    "TracerBoolConversionError",
    "ConcretizationTypeError",
    "NonConcreteBooleanIndexError",
)
_CONVERSIONS = {"int": "int32", "float": "float32", "bool": "bool_", "complex": "complex64"}
_NUMPY = ("jax.numpy", "jnp")
# fmt: off
_SAME_NAMES = frozenset({
    "abs", "add", "all", "any", "arange", "arccos", "arcsin", "arctan", "arctan2", "array", "asarray",
    "broadcast_to", "ceil", "clip", "cos", "cosh", "divide", "dot", "exp", "exp2", "expand_dims", "expm1",
    "floor", "full", "full_like", "log", "log1p", "log2", "matmul", "max", "maximum", "mean", "min", "minimum",
    "mod", "multiply", "negative", "ones", "ones_like", "power", "prod", "reshape", "round", "sign", "sin",
    "sinh", "sqrt", "square", "squeeze", "stack", "subtract", "sum", "swapaxes", "tan", "tanh", "transpose",
    "where", "zeros", "zeros_like", "concatenate", "cumsum", "argmax", "argmin", "sort", "outer", "einsum",
    "isnan", "isinf", "logical_and", "logical_or", "logical_not", "float32", "int32",
})
# fmt: on


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.capture is None:
        return None
    formats = "unsupported format string passed to" in fault.message and "Tracer" in fault.message
    if not fault.exception.endswith(_EXCEPTIONS) and not formats:
        return None
    line = line_of(fault, context)
    if line is None:
        return None
    node = line.node
    value = fault.facts.get("value")
    typed = f" ({type_text(value)})" if isinstance(value, Mapping) and value.get("shape") is not None else ""
    message, mark, fixes = _described(line, node, typed, formats)
    return finding(__name__, fault, context, line.at(mark), message, (), fixes)


def _described(line: Line, node: ast.expr, typed: str, formats: bool) -> tuple[str, ast.expr, list[Fix | None]]:
    source = line.syntax.source
    why = "it is known only when the kernel runs, not while Python traces it"
    if formats:
        return (
            f"A traced value{typed} cannot be formatted: {why}. Print it from the kernel with `pl.debug_print`.",
            node,
            [],
        )
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _CONVERSIONS and node.args:
            what = short(source(node.args[0]), 40)
            message = f"`{what}`{typed} cannot become a Python {name}: {why}. Use the value itself."
            return message, node, list(_converted(line, node, name))
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
            what = short(source(node.func.value), 40)
            return (
                f"`{what}`{typed} cannot become a Python value: {why}. Use the value itself.",
                node,
                list(_item(line, node)),
            )
        dotted = line.syntax.dotted(node.func) or ""
        if dotted.startswith("numpy."):
            called = short(source(node.func), 30)
            message = f"`{called}` computes with NumPy, which needs values, but its argument is traced{typed}: {why}. "
            return message + "Use the function of `jax.numpy`.", node.func, list(_jax_numpy(line, node, dotted))
        return f"`{short(source(node.func), 30)}` needs a value, but its argument is traced{typed}: {why}.", node, []
    if isinstance(node, ast.Subscript):
        if line.kind(node.value) == "array":
            message = (
                f"`{short(source(node.value), 30)}` is a NumPy array, which takes no traced index{typed}: {why}. "
                "Pass it to the kernel as an input and index its ref."
            )
            return message, node, []
        if isinstance(node.value, ast.Name) and line.kind(node.value) in ("traced", "ref"):
            message = f"A mask `{short(source(node.slice), 30)}` gives a result whose size depends on values: {why}. "
            return message + "Choose with `jnp.where` instead.", node, []
        message = f"A Python sequence takes no traced index, `{short(source(node.slice), 30)}`{typed}: {why}. "
        return message + "Choose with `jnp.where`, or pass the values as an input and index its ref.", node, []
    return f"`{short(source(node), 40)}` needs a value, but it is traced{typed}: {why}.", node, []


def _converted(line: Line, call: ast.Call, name: str) -> Iterator[Fix | None]:
    source = line.syntax.source(call.args[0])
    if name in ("int", "bool"):
        editor = Editor(line.path, line.syntax)
        editor.replace(call, source)
        yield suggested(f"Use `{short(source, 40)}` itself", editor)
    editor = Editor(line.path, line.syntax)
    dtype = editor.spell(f"jax.numpy.{_CONVERSIONS[name]}", call, _NUMPY)
    if dtype is not None:
        editor.replace(call, f"{parenthesised(line.syntax, call.args[0])}.astype({dtype})")
        yield suggested(f"Convert it with `.astype({dtype})`", editor)


def _item(line: Line, call: ast.Call) -> Iterator[Fix | None]:
    assert isinstance(call.func, ast.Attribute)
    source = line.syntax.source(call.func.value)
    editor = Editor(line.path, line.syntax)
    editor.replace(call, source)
    yield suggested(f"Use `{short(source, 40)}` itself", editor)


def _jax_numpy(line: Line, call: ast.Call, dotted: str) -> Iterator[Fix | None]:
    name = dotted.removeprefix("numpy.")
    editor = Editor(line.path, line.syntax)
    function = editor.spell(f"jax.numpy.{name}", call, _NUMPY) if name in _SAME_NAMES else None
    if function is None:
        return
    editor.replace(call.func, function)
    # What takes its result computes with a traced value, too.
    for outer in line.syntax.ancestors(call):
        if isinstance(outer, ast.stmt):
            break
        called = (line.syntax.dotted(outer.func) or "") if isinstance(outer, ast.Call) else ""
        if isinstance(outer, ast.Call) and called.removeprefix("numpy.") in _SAME_NAMES and called.startswith("numpy."):
            other = editor.spell(f"jax.{called}", outer, _NUMPY)
            if other is not None:
                editor.replace(outer.func, other)
    yield suggested(f"Use `{function}`", editor)
