"""
## What it does
Finds copies that are started and that nothing in the kernel waits for.

## Why it is wrong
A TPU's `copy.start()` and `plgpu.copy_smem_to_gmem` only start a copy. What comes into the destination is there after
`copy.wait()`; a semaphore that is not waited on at the end of a kernel stops the program. The SMEM that
`copy_smem_to_gmem` reads is given back when the kernel ends, whether the copy is done or not.

## Example
```python
pltpu.make_async_copy(x_hbm, buf, sem).start()
o_ref[...] = buf[...] * 2.0
```

## Use instead
```python
copy = pltpu.make_async_copy(x_hbm, buf, sem)
copy.start()
copy.wait()
o_ref[...] = buf[...] * 2.0
```

## Fix safety
Safe: the wait stands right after the start. Move it down, to the first use, to work while the copy runs.

## Applies to
TPU and Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`dma_start_p` in `jax/_src/pallas/mosaic/primitives.py`, `copy_smem_to_gmem_p` in
`jax/_src/pallas/mosaic_gpu/primitives.py`; no version checks it.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.async_order import wait_for_store
from pallas_lsp.rules.shared.silent import checked, narrow, silent_finding, spot_of
from pallas_lsp.rules.shared.tpu_waits import wait_after_start
from pallas_lsp.rules.shared.uncalled import in_body

SINCE = "0.1.0"
CONSTRUCTS = ("copies", "barriers")
OF_ORDER = True


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "copy-never-waited") or in_body(fault, context):
        return None
    spot = spot_of(fault, context)
    where = narrow(spot) if spot is not None else context.locate(fault)
    if fault.facts.get("copy") == "copy_smem_to_gmem":
        text = (
            "Nothing waits for this copy: the SMEM that it reads is given back when the kernel ends, maybe before the "
            "copy is done. `plgpu.wait_smem_to_gmem(0)` waits for all copies to GMEM."
        )
        fix = wait_for_store(spot) if spot is not None else None
        return silent_finding(__name__, fault, context, where, text, (), [fix])
    source = f"`{short(context.source(where), 60)}`" if spot is not None else "This"
    text = (
        f"{source} starts a copy that nothing in the kernel waits for: what it brings may not be there when it is "
        "read, and its semaphore is left signalled. Call `wait()` of the same copy before the first use."
    )
    fix = wait_after_start(spot) if spot is not None else None
    return silent_finding(__name__, fault, context, where, text, (), [fix])
