"""
## What it does
Finds entries of `scratch_shapes`, `scratch_types` and `pl.run_scoped` that are no allocation: a
`jax.ShapeDtypeStruct`, a plain shape, a memory space that was not called; and one allocation that is given without a
list around it.

## Why it is wrong
An allocation says in which memory it lies, its shape and its dtype: `pltpu.VMEM(shape, dtype)`, `plgpu.SMEM(shape,
dtype)`. Scratch is a list, tuple or dictionary of allocations.

## Example
```python
scratch_shapes=[jax.ShapeDtypeStruct((128, 128), jnp.float32)]
scratch_shapes=pltpu.VMEM((128, 128), jnp.float32)
```

## Use instead
```python
scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)]
```

## Fix safety
A list around one allocation is safe. An allocation made of a shape is a suggestion: which memory is meant is taken
from the backend.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`get_grid_mapping` in `jax/_src/pallas/core.py` and `run_scoped` in `jax/_src/pallas/primitives.py`: objects without
`get_ref_aval`; `wrapped` in `jax/_src/pallas/pallas_call.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot, call_at
from pallas_lsp.rules.shared.user_line import line_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch",)
SITES = (("jax/_src/pallas/pallas_call.py", "_pallas_call.<locals>.wrapped"),)

_NO_ALLOCATION = re.compile(r"'(\w+)' object has no attribute 'get_ref_aval'|Unsupported abstract value type")
_BARE = re.compile(r"'(?:AbstractRef|TransformedRef|MemoryRef|GPUMemoryRef)' object is not iterable")
_STRUCTS = frozenset({"jax.ShapeDtypeStruct", "jax.core.ShapedArray"})
_TPU = ("jax.experimental.pallas.tpu", "pltpu")
_MOSAIC_GPU = ("jax.experimental.pallas.mosaic_gpu", "plgpu")


def judge(fault: Fault, context: Context) -> Finding | None:
    launch = launch_of(fault, context)
    if _BARE.search(fault.message) and launch is not None:
        here = raised_in(fault, "jax/_src/pallas/pallas_call.py", "wrapped", "pallas_call")
        here = here or raised_in(fault, "jax/_src/pallas/core.py", "__init__", "get_grid_mapping")
        spot = launch.argument(launch.scratch)
        if not here or spot is None:
            return None
        message = f"`{launch.scratch}` is one allocation, but it must be a list, tuple or dictionary of allocations."
        editor = Editor(spot.path, spot.syntax)
        start, end = editor.whole(spot.node)
        editor.insert(start, "[")
        editor.insert(end, "]")
        return finding(__name__, fault, context, spot.location, message, (), [safe("Put it into a list", editor)])
    found = _NO_ALLOCATION.search(fault.message) is not None
    # A memory space that was not called has attributes of its own in jax 0.10.
    found = found or (
        fault.exception.endswith("AttributeError") and raised_in(fault, "jax/_src/pallas/mosaic/core.py", "__getattr__")
    )
    if not found or fault.stage not in ("trace", "build"):
        return None
    wrong = _entry(fault, context, launch)
    location = wrong.location if wrong is not None else context.locate(fault)
    what = f"`{short(context.source(location), 50)}`" if wrong is not None else "An entry of the scratch types"
    message = f"{what} is no allocation: it does not say in which memory it lies. Allocate with {_examples(launch)}."
    return finding(__name__, fault, context, location, message, (), _fixes(launch, wrong))


def _examples(launch: Launch | None) -> str:
    if launch is not None and launch.api == "plgpu.kernel":
        return "`plgpu.SMEM(shape, dtype)`, `plgpu.ACC(shape, dtype)` or `plgpu.Barrier()`"
    return "`pltpu.VMEM(shape, dtype)`, `pltpu.SMEM(shape, dtype)` or `plgpu.SMEM(shape, dtype)`"


def _entry(fault: Fault, context: Context, launch: Launch | None) -> Spot | None:
    """The entry that is no allocation: of a run_scoped in the body, else of the launch's scratch."""
    line = line_of(fault, context)
    if line is not None and isinstance(line.node, ast.Call):
        call = call_at(context, line.frames, len(line.frames) - 1)
        if call is not None and isinstance(call.node, ast.Call):
            for argument in (*call.node.args[1:], *(k.value for k in call.node.keywords)):
                if _is_wrong(call.at(argument)):
                    return call.at(argument)
    spot = launch.argument(launch.scratch) if launch is not None else None
    if spot is None:
        return None
    value = spot.syntax.value(spot.node)
    entries: list[ast.expr] = []
    if isinstance(value, ast.List | ast.Tuple):
        entries = value.elts
    elif isinstance(value, ast.Dict):
        entries = value.values
    elif isinstance(value, ast.Call):
        entries = [k.value for k in value.keywords]
    return next((spot.at(e) for e in entries if _is_wrong(spot.at(e))), spot)


def _is_wrong(spot: Spot) -> bool:
    value = spot.syntax.value(spot.node)
    if isinstance(value, ast.Tuple | ast.List | ast.Constant):
        return True
    if isinstance(value, ast.Attribute | ast.Name):
        name = spot.syntax.dotted(value) or ""
        return name.startswith(("jax.experimental.pallas.", "jax.numpy."))
    return isinstance(value, ast.Call) and spot.syntax.dotted(value.func) in _STRUCTS


def _fixes(launch: Launch | None, wrong: Spot | None) -> Iterator[Fix | None]:
    if wrong is None:
        return
    syntax, value = wrong.syntax, wrong.syntax.value(wrong.node)
    gpu = launch is not None and launch.api == "plgpu.kernel"
    module = _MOSAIC_GPU if gpu else _TPU
    editor = Editor(wrong.path, syntax)
    space = editor.spell(f"{module[0]}.{'SMEM' if gpu else 'VMEM'}", wrong.node, module)
    if space is None:
        return
    if isinstance(value, ast.Call):
        shape, dtype = syntax.argument(value, 0, "shape"), syntax.argument(value, 1, "dtype")
        if shape is None or dtype is None:
            return
        text = f"{space}({syntax.source(shape)}, {syntax.source(dtype)})"
    elif isinstance(value, ast.Tuple) and value.elts:
        float32 = editor.spell("jax.numpy.float32", wrong.node, ("jax.numpy", "jnp"))
        if float32 is None:
            return
        text = f"{space}({syntax.source(value)}, {float32})"
    else:
        return
    editor.replace(wrong.node, text)
    yield suggested(f"Allocate it: `{short(text, 50)}`", editor)
