"""
## What it does
Finds refs in tensor memory whose shape does not go into the tiles of the layout that an operation needs: scales of a
product, a ref that is cast to another layout.

## Why it is wrong
A layout of TMEM is made of tiles, (128, columns), in which each element has its lane and its column. A ref of another
number of rows, or of columns that no whole number of tiles fills, has no place for them. Scales are (m, k / block) for
the left and (n, k / block) for the right factor, with m and n in whole tiles of 128 rows.

## Example
```python
plgpu.TMEM((64, 4), jnp.float8_e8m0fnu, layout=plgpu.TMEMLayout.SCALES_LAYOUT)
```

## Use instead
```python
plgpu.TMEM((128, 4), jnp.float8_e8m0fnu, layout=plgpu.TMEMLayout.SCALES_LAYOUT)
```

## Fix safety
This rule offers no fix.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`_tcgen05_mma_constraint_system` and `_tmem_layout_cast_constraint_system` in
`jax/experimental/mosaic/gpu/layout_inference.py`.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.gpu_operands import MGPU
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM", "tcgen05")
_INFERENCE = f"{MGPU}layout_inference.py"
_TILE = re.compile(r"tiles=\(\((?P<tile>\d+(?:, \d+)*)")


def _tiles(details: Details) -> str:
    match = _TILE.search(details.fault.message)
    return f"tiles of ({match['tile']})" if match is not None else "its tiles"


def _scales(details: Details) -> str:
    return (
        f"`{details.source}` reads scales of shape {details['shape']}, which do not divide into {_tiles(details)}: "
        "give them a multiple of 128 rows, and a multiple of 4 columns."
    )


def _cast(details: Details) -> str:
    return (
        f"`{details.source}` works on a ref in TMEM of shape {details['shape']}, which does not divide into "
        f"{_tiles(details)}, those of the layout that is asked for."
    )


_ROWS = (
    Row(
        _INFERENCE,
        ("assign_scaled_layout",),
        _scales,
        r"with shape \(?\[?(?P<shape>[\d, x()\[\]]+)",
        at=((None, "a_scale"), (None, "b_scale")),
    ),
    Row(
        _INFERENCE,
        ("_tmem_layout_cast_constraint_system",),
        _cast,
        r"operand shape:? (?P<shape>[\d, ()\[\]]+)",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
