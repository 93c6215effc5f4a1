"""
## What it does
Finds types of arrays and of memory whose arguments do not stand in their order: the element type before the shape, or
the sizes of the shape one by one.

## Why it is wrong
`plgpu.SMEM`, `plgpu.ACC`, `pltpu.VMEM` and `jax.ShapeDtypeStruct` take the shape, as one tuple, and then the element
type. jax finds out only when it uses the shape, with an error that names neither.

## Example
```python
plgpu.ACC(jnp.float32, (64, 128))
pltpu.VMEM(8, 128, jnp.float32)
```

## Use instead
```python
plgpu.ACC((64, 128), jnp.float32)
pltpu.VMEM((8, 128), jnp.float32)
```

## Fix safety
Putting the arguments into their order is safe.

## Applies to
All backends; jax 0.10, 0.11 and 0.12. It is found by reading the text.

## Source
The parameters of `MemorySpace.__call__` (`jax/_src/pallas/mosaic_gpu/core.py`, `jax/_src/pallas/mosaic/core.py`), of
`WGMMAAccumulatorRef` and of `jax.ShapeDtypeStruct`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.memory_types import ARRAYS, memory_type
from pallas_lsp.rules.shared.user_line import line_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch",)
SPECIFICITY = 71
_STRUCT = "jax.ShapeDtypeStruct"
_MODULES = ("jax.numpy.", "numpy.", "ml_dtypes.")
_TYPES = ("float", "bfloat", "int", "uint", "complex", "bool")


def read(path: str, syntax: Syntax, _: Context) -> Iterator[Finding]:
    """The types of a file that are written like that."""
    if "pallas" not in syntax.text:
        return
    for node in syntax.nodes:
        wrong = _wrong(path, syntax, node) if isinstance(node, ast.Call) else None
        if wrong is not None:
            location, message, fix = wrong
            fixes = (fix,) if fix is not None else ()
            yield Finding(rule_name(__name__), location, message, stage=Stage.READ, fixes=fixes)


def judge(fault: Fault, context: Context) -> Finding | None:
    line = line_of(fault, context) if fault.exception.endswith("TypeError") else None
    for node in ast.walk(line.node) if line is not None else ():
        wrong = _wrong(line.path, line.syntax, node) if line is not None and isinstance(node, ast.Call) else None
        if wrong is not None:
            return finding(__name__, fault, context, wrong[0], wrong[1], (), [wrong[2]])
    return None


def _wrong(path: str, syntax: Syntax, call: ast.Call) -> tuple[Location, str, Fix | None] | None:
    name = memory_type(syntax, call)
    if (name not in ARRAYS and syntax.dotted(call.func) != _STRUCT) or len(call.args) < 2:
        return None
    called = short(syntax.source(call.func), 40)
    first, second = call.args[:2]
    editor = Editor(path, syntax)
    location = Location(path, syntax.range(call))
    if _is_dtype(syntax, first) and isinstance(second, ast.Tuple | ast.List):
        text = f"`{called}` takes the shape first and then the element type; here they are swapped."
        editor.replace(first, syntax.source(second))
        editor.replace(second, syntax.source(first))
        return location, text, safe("Swap them", editor)
    sizes = [each for each in call.args if _is_size(each)]
    if len(sizes) > 1 and sizes == call.args[: len(sizes)] and len(call.args) - len(sizes) < 2:
        text = f"`{called}` takes the shape as one tuple, not its sizes one by one."
        editor.insert(syntax.span(sizes[0])[0], "(")
        editor.insert(syntax.span(sizes[-1])[1], ")")
        return location, text, safe("Put the sizes into a tuple", editor)
    return None


def _is_dtype(syntax: Syntax, node: ast.expr) -> bool:
    name = syntax.dotted(node) or ""
    return name.startswith(_MODULES) and name.rpartition(".")[2].startswith(_TYPES)


def _is_size(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)
