"""
## What it does
Finds concatenations (`jnp.concatenate`, `jnp.stack`) of values in registers whose layouts cannot be put together:
layouts that differ, plain loads along another axis than the first, constants.

## Why it is wrong
Each thread puts the elements that it holds of one array behind those that it holds of the other. So the arrays have to
be spread over the threads in the same way, and the parts of a thread have to follow each other along the axis. A plain
load (`plgpu.Layout.WG_STRIDED`) runs through the whole array row by row, which is so for the first axis only; a
constant is held by all threads.

## Example
```python
jnp.concatenate([a_ref[...], b_ref[...]], axis=1)
```

## Use instead
```python
a = plgpu.load(a_ref, layout=plgpu.Layout.WGMMA)
b = plgpu.load(b_ref, layout=plgpu.Layout.WGMMA)
jnp.concatenate([a, b], axis=1)
```

## Fix safety
This rule offers no fix: storing both parts next to each other in SMEM is often better than a layout.

## Applies to
Mosaic GPU; jax 0.11 and 0.12 (0.10 has no concatenation).

## Source
`concatenate` in `jax/experimental/mosaic/gpu/fragmented_array.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.gpu_operands import MGPU
from pallas_lsp.rules.shared.site_table import Row

SINCE = "0.1.0"
CONSTRUCTS = ("layouts", "primitives")
_ARRAY = f"{MGPU}fragmented_array.py"
_SITE = ("concatenate",)
_STORE = "or store the parts next to each other in SMEM and load them together."

_ROWS = (
    Row(
        _ARRAY,
        _SITE,
        "`{source}` puts plain loads together along another axis than the first, but each thread holds its elements "
        f"row by row: load them in a tiled layout (`plgpu.Layout.WGMMA`), {_STORE}",
        "only supported along",
    ),
    Row(
        _ARRAY,
        _SITE,
        "`{source}` puts constants together, which every thread holds as a whole: give them a layout with "
        f"`plgpu.layout_cast`, {_STORE}",
        "splat layout",
    ),
    Row(
        _ARRAY,
        _SITE,
        "`{source}` puts values together that are spread over the threads in different ways: cast them to one layout "
        f"with `plgpu.layout_cast`, {_STORE}",
        "the same layout|WGStridedFragLayout",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
