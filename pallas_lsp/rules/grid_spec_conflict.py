"""
## What it does
Finds launches that give `grid_spec` and, beside it, something that a grid spec already holds: `grid`, `in_specs`,
`out_specs` or `scratch_shapes`.

## Why it is wrong
A grid spec is another way to give these four. jax does not guess which of the two counts.

## Example
```python
pl.pallas_call(kernel, out_shape=out, grid=(4,), grid_spec=pl.GridSpec(grid=(4,), in_specs=[s], out_specs=s))
```

## Use instead
```python
pl.pallas_call(kernel, out_shape=out, grid_spec=pl.GridSpec(grid=(4,), in_specs=[s], out_specs=s))
```

## Fix safety
The fixes are suggestions: removing the argument where the grid spec has one of its own, else moving it there.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`pallas_call` in `jax/_src/pallas/pallas_call.py`, "If `grid_spec` is specified, then ... must be".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids", "block specs and index maps")
SITES = (("jax/_src/pallas/pallas_call.py", "pallas_call"),)

_NAMES = ("grid", "in_specs", "out_specs", "scratch_shapes")
_QUOTED = re.compile(r"then `(\w+)` must")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/pallas_call.py", "pallas_call") or "`grid_spec`" not in fault.message:
        return None
    launch = launch_of(fault, context)
    match = _QUOTED.search(fault.message)
    if launch is None or match is None or match.group(1) not in _NAMES:
        return None
    name = match.group(1)
    keyword = next((k for k in launch.call.keywords if k.arg == name), None)
    spot = launch.spot.at(keyword.value) if keyword is not None else None
    location = type(launch.name)(launch.spot.path, launch.syntax.range(keyword)) if keyword is not None else launch.name
    spec = launch.grid_spec()
    message = f"`{name}` is given beside `grid_spec`, which holds it already. Give it in one place only."
    related = [Related(spec.location, "This is the grid spec.")] if spec is not None else []
    fixes = list(_fixes(launch, name, keyword)) if spot is not None and keyword is not None else []
    return finding(__name__, fault, context, location, message, related, fixes)


def _fixes(launch: Launch, name: str, keyword: ast.keyword) -> Iterator[Fix | None]:
    spec = launch.grid_spec()
    inside = None
    if spec is not None and isinstance(spec.node, ast.Call):
        order = ("grid", "in_specs", "out_specs", "scratch_shapes")
        shift = 0 if (spec.syntax.called(spec.node) or "").endswith(".GridSpec") else 1
        inside = spec.syntax.arguments(spec.node).get(order.index(name) + shift, name)
    editor = Editor(launch.spot.path, launch.syntax)
    editor.remove_argument(launch.call, keyword)
    if inside is not None or spec is None:
        yield suggested(f"Remove `{name}` here; the grid spec's counts", editor)
    elif isinstance(spec.node, ast.Call) and spec.path == launch.spot.path:
        editor.insert_argument(spec.node, launch.syntax.source(keyword))
        yield suggested(f"Move `{name}` into the grid spec", editor)
