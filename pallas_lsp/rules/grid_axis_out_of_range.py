"""
## What it does
Finds `pl.program_id` and `pl.num_programs` of an axis that the grid does not have.

## Why it is wrong
The axes of a grid are numbered from 0. A launch without `grid` has none at all.

## Example
```python
pl.program_id(2)      # with grid=(4, 2)
```

## Use instead
```python
pl.program_id(1)
```

## Fix safety
The fix, the last axis, is a suggestion.

## Applies to
`pl.pallas_call` on all backends; jax 0.10, 0.11 and 0.12. Kernels of `plgpu.kernel` and `pl.kernel` name their axes:
`jax.lax.axis_index("i")`.

## Source
`PallasGridContext.size` in `jax/_src/pallas/core.py`, "Axis N is out of bounds for grid".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
SITES = (("jax/_src/pallas/core.py", "PallasGridContext.size"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/core.py", "size"):
        return None
    line = line_of(fault, context)
    launch = launch_of(fault, context)
    if line is None or not isinstance(line.node, ast.Call):
        return None
    axis = line.syntax.argument(line.node, 0, "axis")
    location = line.at(axis) if axis is not None else line.location
    grid = launch.facts.get("grid") if launch is not None else None
    called = f"`{short(line.syntax.source(line.node), 40)}`"
    if not fault.exception.endswith("ValueError"):
        message = f"{called} asks for an axis by something else than a number: the axes of a grid are numbered from 0."
        return finding(__name__, fault, context, location, message)
    told = re.search(r"for grid \((.*)\)", fault.message)
    grid = grid or ([size for size in told[1].split(",") if size.strip()] if told is not None else [])
    size = len(grid) if isinstance(grid, list) else 0
    if size:
        shown = f"({', '.join(str(each).strip() for each in grid)}{',' if size == 1 else ''})"
        axes = f"0 to {size - 1}" if size > 1 else "0 only"
        message = f"{called} asks for an axis that the grid {shown} does not have: its axes are {axes}."
    else:
        message = f"{called} asks for an axis of the grid, but this launch has no grid: give it one with `grid=(...)`."
    fixes = _fixes(line, axis, size) if axis is not None else ()
    return finding(__name__, fault, context, location, message, _related(launch), fixes)


def _related(launch: Launch | None) -> Iterator[Related]:
    if launch is not None:
        grid = launch.argument("grid")
        yield Related(
            grid.location if grid is not None else launch.name, "The grid is given here." if grid else "The launch."
        )


def _fixes(line: Line, axis: ast.expr, size: int) -> Iterator[Fix | None]:
    if size:
        editor = Editor(line.path, line.syntax)
        editor.replace(axis, str(size - 1))
        yield suggested(f"Use the last axis, {size - 1}", editor)
