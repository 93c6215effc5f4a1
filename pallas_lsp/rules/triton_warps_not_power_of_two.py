"""
## What it does
Finds Triton launches with a `num_warps` that is not a power of two.

## Why it is wrong
Triton spreads the elements of a block evenly over the threads of a program, and its blocks have powers of two as sizes.
jax passes the number on, and the Triton compiler may end the whole process: it did for 3 warps on an H200 (jax 0.11.2).

## Example
```python
compiler_params=plt.CompilerParams(num_warps=6)
```

## Use instead
```python
compiler_params=plt.CompilerParams(num_warps=8)
```

## Fix safety
Safe: the number of warps decides how fast a kernel is, not what it computes.

## Applies to
Triton kernels; jax 0.10, 0.11 and 0.12.

## Source
The layouts of Triton's GPU dialect; jax looks at the number nowhere.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Fix, Safety, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits
from pallas_lsp.rules.shared.compiler_params import field
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.silent import checked, silent_finding
from pallas_lsp.rules.shared.site_table import Details

SINCE = "0.1.0"
CONSTRUCTS = ("Triton", "compiler parameters")
_MOST = 32


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "triton-warps"):
        return None
    warps = int(fault.facts["num_warps"])
    spot = field("num_warps")(Details(fault, context))
    launch = launch_of(fault, context)
    where = spot.location if spot is not None else launch.name if launch is not None else context.locate(fault)
    text = f"`num_warps` is {warps}, but Triton needs a power of two: 1, 2, 4, 8, 16 or 32."
    fixes: list[Fix] = []
    if spot is not None:
        below = 1 << max(warps.bit_length() - 1, 0)
        for count in (min(2 * below, _MOST), min(below, _MOST)) if warps > 0 else (4,):
            fixes += keyword_edits.replace(spot, str(count), f"Use {count} warps", Safety.SAFE)
    return silent_finding(__name__, fault, context, where, text, fixes=fixes, severity=Severity.ERROR)
