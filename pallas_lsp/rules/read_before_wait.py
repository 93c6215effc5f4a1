"""
## What it does
Finds copies into SMEM or VMEM whose destination is read before anything waits for the copy.

## Why it is wrong
`plgpu.copy_gmem_to_smem` only starts a copy, and tells by its barrier that it is done; a TPU's
`pltpu.make_async_copy(...).start()` does the same with a semaphore. Without a wait in between, a read sees whatever
the memory held before. Nothing is refused: the results are wrong now and then.

## Example
```python
plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
o_smem[...] = x_smem[...] * 2.0
```

## Use instead
```python
plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
plgpu.barrier_wait(barrier)
o_smem[...] = x_smem[...] * 2.0
```

## Fix safety
Safe: waiting for the copy before the first read is what was meant.

## Applies to
Mosaic GPU and TPU; jax 0.10, 0.11 and 0.12. A read of more than the copy brings is left alone where the kernel
is followed step by step: what is still to come may be masked in it.

## Source
`copy_gmem_to_smem_p` in `jax/_src/pallas/mosaic_gpu/primitives.py`, `dma_start_p` in
`jax/_src/pallas/mosaic/primitives.py`; no version checks it.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.async_order import wait_before
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related_spots, silent_finding, spot_of
from pallas_lsp.rules.shared.tpu_waits import wait_after_start
from pallas_lsp.rules.shared.uncalled import in_body

SINCE = "0.1.0"
CONSTRUCTS = ("copies", "barriers")
OF_ORDER = True


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "read-before-wait") or in_body(fault, context):
        return None
    read = spot_of(fault, context)
    copy = next(related_spots(fault, context), None)
    if read is None:
        return None
    on_tpu = fault.facts.get("copy") == "dma_start"
    is_product = fault.facts.get("copy") == "tcgen05_mma"
    what = _destination(copy, on_tpu=on_tpu, is_product=is_product)
    how = "its `wait()`" if on_tpu else "`plgpu.barrier_wait`"
    place = f"line {read.location.range.start.line + 1}"
    thing = "product" if is_product else "copy"
    wait = how[0].upper() + how[1:] if on_tpu else how
    text = (
        f"Nothing waits for this {thing} before {what} is read on {place}: it goes on while the kernel runs, so that "
        f"the read sees what was there before. {wait} has to come first."
    )
    if copy is None:
        message = f"`{short(read.source, 40)}` is read before the copy into it was waited for."
        return silent_finding(__name__, fault, context, narrow(read), message)
    fix: Fix | None = wait_after_start(copy) if on_tpu else wait_before(copy, read)
    related = [Related(narrow(read), "It is read here.")]
    return silent_finding(__name__, fault, context, narrow(copy), text, related, [fix])


def _destination(copy: Spot | None, *, on_tpu: bool, is_product: bool = False) -> str:
    call: ast.AST | None = copy.node if copy is not None else None
    if on_tpu and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and copy is not None:
        call = copy.syntax.value(call.func.value)
    if copy is None or not isinstance(call, ast.Call):
        return "its destination"
    if is_product:
        given = copy.syntax.arguments(call).get(0, "acc")
        return f"`{short(copy.syntax.source(given), 40)}`" if given is not None else "its accumulator"
    given = copy.syntax.arguments(call).get(1, "dst") or copy.syntax.arguments(call).get(1, "dst_ref")
    return f"`{short(copy.syntax.source(given), 40)}`" if given is not None else "its destination"
