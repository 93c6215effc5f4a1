"""
## What it does
Finds shared memory that is written while `wgmma` or a copy out of it may still be reading: in the order of the
statements, and from one iteration of a loop to the next.

## Why it is wrong
`plgpu.wgmma` and `plgpu.copy_smem_to_gmem` only start: the tensor core and the copy engine read their SMEM later.
`plgpu.wgmma_wait(0)` (or reading the accumulator) and `plgpu.wait_smem_to_gmem(0)` say when they are done. What is
stored or copied there before that mixes with what they read. Nothing is refused: the results are wrong now and then.

## Example
```python
def step(i, _):
    o_smem[...] = x_gmem[i] * 2.0
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[i])
```

## Use instead
```python
def step(i, _):
    o_smem[...] = x_gmem[i] * 2.0
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[i])
    plgpu.wait_smem_to_gmem(0, wait_read_only=True)
```

## Fix safety
Safe: a wait changes nothing but the time. Several buffers in turn keep more of the engines busy.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12. Only whole refs are followed: buffers in turn are left alone.

## Source
`copy_smem_to_gmem`, `wait_smem_to_gmem`, `wgmma` and `wgmma_wait` in `jax/_src/pallas/mosaic_gpu/primitives.py`; no
version checks it.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.async_order import memory_used, wait_between
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related_spots, silent_finding, spot_of

SINCE = "0.1.0"
CONSTRUCTS = ("copies", "wgmma")
OF_ORDER = True
_READERS = {
    "wgmma_ref": ("the tensor core", "wgmma_wait"),
    "copy_smem_to_gmem": ("the copy engine", "wait_smem_to_gmem"),
}
_BARRIERS = {
    "tcgen05_mma": "the tensor core may still use it",
    "async_copy_smem_to_tmem": "the tensor core may still use it",
    "copy_gmem_to_smem": "a copy into it may still be under way",
}
"""What a barrier tells the end of."""


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "smem-overwritten-in-use"):
        return None
    write, read = spot_of(fault, context), next(related_spots(fault, context), None)
    reader = str(fault.facts.get("reader"))
    target = _target(write)
    since = f" since line {read.location.range.start.line + 1}" if read is not None else ""
    who, wait = _READERS.get(reader, ("", ""))
    if reader in _BARRIERS:
        text = (
            f"{target} is overwritten here while {_BARRIERS[reader]}{since}: a `plgpu.barrier_wait` for that has to "
            "come in between."
        )
    else:
        text = (
            f"{target} is overwritten here while {who} may still read it{since}: `plgpu.{wait}(0)` has to come in "
            "between."
        )
    where = narrow(write) if write is not None else context.locate(fault)
    others = [Related(narrow(read), "It is used by this, which nothing waits for.")] if read is not None else []
    fix = wait_between(read, write, wait) if read is not None and write is not None and wait else None
    return silent_finding(__name__, fault, context, where, text, others, [fix])


def _target(write: Spot | None) -> str:
    """What is written, as the source names it."""
    node = memory_used(write)
    return f"`{short(write.syntax.source(node), 40)}`" if write is not None and node is not None else "SMEM"
