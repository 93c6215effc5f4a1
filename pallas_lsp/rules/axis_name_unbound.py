"""
## What it does
Finds kernels of `pl.pallas_call` that ask for an axis by a name that nothing has given: `jax.lax.axis_index("i")`,
`jax.lax.axis_size`, `jax.lax.psum` and other collectives.

## Why it is wrong
The axes of a `pl.pallas_call` grid have numbers, not names: `pl.program_id(0)` is where the program stands on the
first, `pl.num_programs(0)` how many there are. Named are the axes of a mesh (`pl.kernel`, `pl.core_map`) and those of
the devices of an enclosing `jax.shard_map`. Programs cannot combine their values with a collective: each has its own
memory.

## Example
```python
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * jax.lax.axis_index("rows")

pl.pallas_call(kernel, grid=(4,), ...)
```

## Use instead
```python
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id(0)
```

## Fix safety
The number of the only axis of the grid is suggested.

## Applies to
Triton, TPU and kernels without a backend; jax 0.10, 0.11 and 0.12.

## Source
`_check_axis_names` in `jax/_src/lax/parallel.py`, `AxisEnv.axis_size` in `jax/_src/core.py`, `_axis_index_rule` in
`jax/_src/pallas/triton/lowering.py` and `jax/_src/pallas/mosaic/lowering.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Backend, Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
SITES = (
    ("jax/_src/lax/parallel.py", "_check_axis_names"),
    ("jax/_src/core.py", "AxisEnv.axis_size"),
    ("jax/_src/pallas/triton/lowering.py", "_axis_index_rule"),
    ("jax/_src/pallas/mosaic/lowering.py", "_axis_index_rule"),
)
_NAME = re.compile(r"unbound axis name:? (?P<a>[\w-]+)|Axis name (?P<b>\S+) not found")
_INSTEAD = {"axis_index": "program_id", "axis_size": "num_programs"}


def judge(fault: Fault, context: Context) -> Finding | None:
    if not any(raised_in(fault, *site) for site in SITES):
        return None
    capture = context.capture(fault)
    match = _NAME.search(fault.message)
    if match is None or capture is None or capture.backend is Backend.MOSAIC_GPU:
        return None
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    call = node if isinstance(node, ast.Call) else None
    function = syntax.called(call) if syntax is not None and call is not None else None
    name, last = match["a"] or match["b"], (function or "").rpartition(".")[2]
    launch = launch_of(fault, context)
    instead = _INSTEAD.get(last)
    if instead is not None:
        what = f"the axes of a grid have numbers: `pl.{instead}(0)` is for the first"
    else:
        what = (
            "programs of a grid cannot combine their values: store a value for each and combine them after the launch, "
            "or loop within one program"
        )
    asked = f"`{short(context.source(place), 40)}`" if call is not None else "This"
    text = f'{asked} asks for an axis named "{name}", but this kernel has no axis of that name; {what}.'
    spot = Spot(place.path, syntax, call) if syntax is not None and call is not None else None
    fixes = _fixes(launch, spot, instead) if spot is not None and instead is not None else ()
    return finding(__name__, fault, context, narrowed(place, context), text, _related(launch), fixes)


def _related(launch: Launch | None) -> Iterator[Related]:
    if launch is not None:
        grid = launch.argument("grid")
        yield Related(grid.location if grid is not None else launch.name, "The grid." if grid else "The launch.")


def _fixes(launch: Launch | None, spot: Spot, instead: str) -> Iterator[Fix | None]:
    grid = launch.facts.get("grid") if launch is not None else None
    editor = Editor(spot.path, spot.syntax)
    function = editor.spell(f"jax.experimental.pallas.{instead}", spot.node, ("jax.experimental.pallas", "pl"))
    if function is not None and isinstance(grid, list) and len(grid) == 1:
        editor.replace(spot.node, f"{function}(0)")
        yield suggested(f"Use the axis of the grid, `{function}(0)`", editor)
