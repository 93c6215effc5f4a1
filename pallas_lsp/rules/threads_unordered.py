"""
## What it does
Finds shared memory that one thread of a Mosaic GPU kernel writes while another thread may still read or write it, or
reads while another may still write it.

## Why it is wrong
The threads of a block run at the same time, and so does the copy engine that one of them starts. Only barriers order
them: what a thread did before it arrived on a barrier is over for a thread that waited for that arrival.

## Example
```python
@pl.when(thread == 0)                            # the other thread may still read this slot
def _():
    plgpu.copy_gmem_to_smem(x.at[rows], buffer.at[slot], full.at[slot])
```

## Use instead
```python
@pl.when(thread == 0)
def _():
    plgpu.barrier_wait(empty.at[slot])           # the other thread arrives on it after its reads
    plgpu.copy_gmem_to_smem(x.at[rows], buffer.at[slot], full.at[slot])
```

## Fix safety
No fix: which barrier the threads should meet at is for the author to say.

## Applies to
Mosaic GPU kernels with several threads; jax 0.10, 0.11 and 0.12.

## Source
The kernel followed step by step; jax looks at it in no version.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.async_order import memory_used
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related_spots, silent_finding, spot_of

SINCE = "0.1.0"
CONSTRUCTS = ("barriers", "threads and grids")
OF_ORDER = True
_WRITES = ("swap", "store", "addupdate", "copy_gmem_to_smem", "async_store_tmem")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "threads-unordered"):
        return None
    use, other = spot_of(fault, context), next(related_spots(fault, context), None)
    where = narrow(use) if use is not None else context.locate(fault)
    here = "written" if fault.facts.get("this") in _WRITES else "read"
    there = "write" if fault.facts.get("other") in _WRITES else "read"
    at = f" on line {other.location.range.start.line + 1}" if other is not None else ""
    text = (
        f"{_target(use)} is {here} here while another thread may still {there} it{at}: no barrier orders the two. Let "
        "the other thread arrive on one after its use, and wait for it before this."
    )
    others = [Related(narrow(other), "Another thread uses it here.")] if other is not None else []
    return silent_finding(__name__, fault, context, where, text, others)


def _target(use: Spot | None) -> str:
    node = memory_used(use)
    named = use is not None and isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return f"`{short(use.syntax.source(node), 40)}`" if named and use is not None and node is not None else "Memory"
