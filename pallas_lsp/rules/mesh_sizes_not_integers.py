"""
## What it does
Finds launches of `plgpu.kernel` whose grid or cluster is made of numbers that are no integers, such as `m / 64`.

## Why it is wrong
A grid counts programs, so its sizes are Python integers. `/` makes a float, even of integers that divide.

## Example
```python
plgpu.kernel(body, ..., grid=(m / 64,), grid_names=("m",))
```

## Use instead
```python
plgpu.kernel(body, ..., grid=(m // 64,), grid_names=("m",))
```

## Fix safety
The fixes are suggestions: rounding down leaves a remainder out, rounding up covers it with a program that has to
mask.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`tracing_grid_env` in `jax/_src/pallas/core.py`, which asserts it without a message.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Backend, Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.arithmetic import integer_edits
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mesh import mesh_of
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("meshes and devices", "threads and grids")
SITES = (("jax/_src/pallas/core.py", "tracing_grid_env"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    capture = context.capture(fault)
    if not raised_in(fault, "jax/_src/pallas/core.py", "tracing_grid_env"):
        return None
    if capture is None or capture.backend is not Backend.MOSAIC_GPU or not fault.exception.endswith("AssertionError"):
        return None
    launch = launch_of(fault, context)
    if launch is None:
        return None
    for name in ("grid", "cluster"):
        sizes = mesh_of(fault).get(name)
        spot = launch.argument(name)
        if not isinstance(sizes, list) or spot is None:
            continue
        wrong = next((i for i, size in enumerate(sizes) if not isinstance(size, int)), None)
        if wrong is None:
            continue
        value = spot.syntax.value(spot.node)
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        at = spot.at(parts[wrong]) if wrong < len(parts) else spot
        text = f"`{at.source}` is {sizes[wrong]} in the {name}, but its sizes are Python integers."
        return finding(__name__, fault, context, at.location, text, (), _fixes(at))
    return None


def _fixes(spot: Spot) -> Iterator[Fix | None]:
    for title, changes in integer_edits(spot.syntax, spot.node):
        edits = Editor(spot.path, spot.syntax)
        for node, new in changes:
            edits.replace(node, new)
        yield suggested(title, edits)
