"""
## What it does
Finds output types that do not say both shape and dtype: a plain tuple, a dtype, the class itself, or nothing at all.

## Why it is wrong
`out_shape` of `pl.pallas_call`, and `out_type` of `pl.kernel` and `plgpu.kernel`, hold one type for each output, such
as `jax.ShapeDtypeStruct(shape, dtype)`. A tuple is read as a sequence of outputs, so in `(512, 256)` each number
would be an output.

## Example
```python
pl.pallas_call(kernel, out_shape=x.shape)(x)
```

## Use instead
```python
pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
```

## Fix safety
The fixes are suggestions: where the dtype or the shape is not written, it is that of an argument of the call.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_convert_out_shape_to_aval` in `jax/_src/pallas/core.py`, "Invalid out_shape type"; Python's own TypeError where
`out_shape` is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch",)
SITES = (("jax/_src/pallas/core.py", "_convert_out_shape_to_aval"),)

_STRUCT = "jax.ShapeDtypeStruct"
_STRUCTS = frozenset({_STRUCT, "jax.core.ShapedArray"})


def judge(fault: Fault, context: Context) -> Finding | None:
    launch = launch_of(fault, context)
    if launch is None:
        return None
    if passed_through(fault, "jax/_src/pallas/core.py", "_convert_out_shape_to_aval"):
        if "manual_axis_type" in fault.message or " vma" in fault.message:
            return None
        return _invalid(fault, context, launch)
    if "NoneType" in fault.message and fault.exception.endswith(("TypeError", "AttributeError")):
        spot = launch.argument("out_type", "out_shape")
        value = _value(spot)
        if isinstance(value, ast.Constant) and value.value is None and not launch.facts.get("outputs"):
            return _invalid(fault, context, launch)
    missing = "missing 1 required positional argument: 'out_shape'" in fault.message
    if fault.stage == "build" and missing and fault.exception.endswith("TypeError"):
        message = (
            f"`{launch.output}` is missing: the launch must be told shape and dtype of each output, as "
            f"`{launch.output}=jax.ShapeDtypeStruct(shape, dtype)`."
        )
        return finding(__name__, fault, context, launch.name, message, (), _added(launch))
    return None


def _invalid(fault: Fault, context: Context, launch: Launch) -> Finding:
    spot = launch.argument("out_type", "out_shape")
    location = spot.location if spot is not None else launch.name
    source = f"`{short(context.source(location))}`" if spot is not None else f"`{launch.output}`"
    value = _value(spot)
    is_class = isinstance(value, ast.Name | ast.Attribute) and spot is not None and _called(spot, value) in _STRUCTS
    if is_class:
        what = "is the class itself; call it with shape and dtype"
    elif isinstance(value, ast.Constant) and value.value is None:
        what = "stands for no output, so the kernel gets `None` in place of an output ref"
    elif isinstance(value, ast.Attribute) and value.attr == "dtype":
        what = "is a dtype without a shape"
    elif isinstance(value, ast.Attribute) and value.attr == "shape":
        what = "is a shape without a dtype, and a tuple is read as a sequence of outputs"
    elif isinstance(value, ast.Tuple | ast.List):
        what = "is a plain tuple, which is read as a sequence of outputs"
    else:
        what = "is no type of an output"
    message = f"{source} {what}: each output is described by shape and dtype, as `jax.ShapeDtypeStruct(shape, dtype)`."
    return finding(__name__, fault, context, location, message, (), _fixes(launch, spot))


def _value(spot: Spot | None) -> ast.AST | None:
    return spot.syntax.value(spot.node) if spot is not None and isinstance(spot.node, ast.expr) else None


def _called(spot: Spot, node: ast.AST) -> str | None:
    return spot.syntax.dotted(node)


def _fixes(launch: Launch, spot: Spot | None) -> Iterator[Fix | None]:
    if spot is None:
        return
    syntax, value = spot.syntax, _value(spot)
    for shape, dtype in _guesses(launch, spot, value):
        editor = Editor(spot.path, syntax)
        struct = editor.spell(_STRUCT, spot.node, ("jax", "jax"))
        if struct is None:
            return
        editor.change(*editor.whole(spot.node), f"{struct}({shape}, {dtype})")
        yield suggested(f"Describe the output: `{struct}({short(shape, 30)}, {short(dtype, 30)})`", editor)


def _guesses(launch: Launch, spot: Spot, value: ast.AST | None) -> Iterator[tuple[str, str]]:
    """(shape, dtype) as source, best first."""
    syntax = spot.syntax
    if isinstance(value, ast.Attribute) and value.attr in ("shape", "dtype"):
        base = syntax.source(value.value)
        yield f"{base}.shape", f"{base}.dtype"
        return
    operands = [o for o in launch.operands() if isinstance(o.node, ast.Name | ast.Attribute)]
    local = next(
        (o for o in operands if o.path == spot.path and syntax.function(o.node) is syntax.function(spot.node)), None
    )
    if isinstance(value, ast.Tuple | ast.List):
        last = value.elts[-1] if value.elts else None
        if len(value.elts) == 2 and last is not None and not _is_number(launch, last):
            yield syntax.source(value.elts[0]), syntax.source(last)
            return
        if local is not None:
            yield spot.source, f"{local.source}.dtype"
        return
    if local is not None:
        yield f"{local.source}.shape", f"{local.source}.dtype"


def _is_number(launch: Launch, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    given = launch.facts.get("given_out_type") or launch.facts.get("given_out_shape") or {}
    items = given.get("items") if isinstance(given, Mapping) else None
    if items:
        return str(items[-1].get("kind")) == "int"
    return isinstance(node, ast.BinOp | ast.Name | ast.Subscript)


def _added(launch: Launch) -> Iterator[Fix | None]:
    operands = [o for o in launch.operands() if isinstance(o.node, ast.Name | ast.Attribute)]
    if not operands or operands[0].path != launch.spot.path:
        return
    editor = Editor(launch.spot.path, launch.syntax)
    struct = editor.spell(_STRUCT, launch.call, ("jax", "jax"))
    if struct is not None:
        base = operands[0].source
        editor.insert_argument(launch.call, f"{launch.output}={struct}({base}.shape, {base}.dtype)")
        yield suggested(f"Give the output the type of `{base}`", editor)
