"""
## What it does
Finds values that `plgpu.Layout.WG_STRIDED` cannot spread over the threads of a warpgroup: their number of elements is
no multiple of the threads times `vec_size`.

## Why it is wrong
`WG_STRIDED(shape, vec_size)` gives each of the 128 threads `vec_size` neighbouring elements at a time, so the value has
to have a multiple of `128 * vec_size` elements.

## Example
```python
plgpu.layout_cast(x, plgpu.Layout.WG_STRIDED((384,), vec_size=4))   # 512 at a time
```

## Use instead
```python
plgpu.layout_cast(x, plgpu.Layout.WG_STRIDED((384,), vec_size=1))
```

## Fix safety
The largest smaller `vec_size` that fits is suggested.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`WGStridedFragLayout.__post_init__` and `WGStridedFragLayout.from_shaped_type` in
`jax/experimental/mosaic/gpu/fragmented_array.py`.
"""

from __future__ import annotations

import ast
import math
import re

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared import keyword_edits
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_operands import MGPU
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("layouts",)
_ARRAY = f"{MGPU}fragmented_array.py"
SITES = (
    (_ARRAY, "WGStridedFragLayout.__post_init__"),
    (_ARRAY, "WGStridedFragLayout.from_shaped_type"),
)
_LAYOUT = re.compile(r"WGStridedFragLayout\(shape=\((?P<shape>[\d, ]*)\), vec_size=(?P<vec>\d+)\)")
_THREADS = 128


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, _ARRAY, *(function for _, function in SITES)):
        return None
    place = context.locate(fault)
    source = short(context.source(place), 50)
    match = _LAYOUT.search(fault.message)
    if match is None:
        text = (
            f"`{source}` has elements whose width no thread can hold a whole number of: convert to a type of 8, 16, 32 "
            "or 64 bits."
        )
        return finding(__name__, fault, context, narrowed(place, context), text)
    count, vec = math.prod(int(n) for n in re.findall(r"\d+", match["shape"])), int(match["vec"])
    text = (
        f"A value of shape ({match['shape']}) has {count} elements, which {_THREADS} threads with {vec} each at a time "
        f"(`vec_size={vec}`) cannot share: it takes a multiple of {_THREADS * vec}."
    )
    spot = _layout(context.syntax(place.path), context.node(place), place.path)
    fixes = _fixes(spot, count, vec) if spot is not None else []
    return finding(__name__, fault, context, spot.location if spot is not None else place, text, (), fixes)


def _layout(syntax: Syntax | None, node: ast.AST | None, path: str) -> Spot | None:
    """``WG_STRIDED(...)`` in the statement at fault, where it is the only one."""
    statement = syntax.statement(node) if syntax is not None and node is not None else None
    if syntax is None or statement is None:
        return None
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    found = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "WG_STRIDED"]
    return Spot(path, syntax, found[0]) if len(found) == 1 else None


def _fixes(spot: Spot, count: int, vec: int) -> list[Fix]:
    assert isinstance(spot.node, ast.Call)
    better = next((n for n in range(vec - 1, 0, -1) if vec % n == 0 and count % (_THREADS * n) == 0), 0)
    given = spot.syntax.arguments(spot.node).get(1, "vec_size")
    if not better or given is None:
        return []
    return list(keyword_edits.replace(spot.at(given), str(better), f"Use vec_size={better}"))
