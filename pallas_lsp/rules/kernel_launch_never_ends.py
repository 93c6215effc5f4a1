"""
## What it does
Reports kernels whose launch on a GPU did not end within its time limit.

## Why it is wrong
A kernel that waits for something that never comes holds the GPU for ever: a barrier that expects more arrivals than
there are, a wait in a branch that the arriving threads do not take, two threads that wait for each other. A very slow
kernel looks the same.

## Example
```python
barrier = plgpu.Barrier(num_arrivals=2)   # one thread arrives, all wait
plgpu.barrier_arrive(barrier)
plgpu.barrier_wait(barrier)
```

## Use instead
As many arrivals as the barrier expects, on each turn of the loop. For a kernel that is only slow, a longer time limit
(`confirm.launchSeconds`).

## Fix safety
This rule offers no fix.

## Applies to
Triton and Mosaic GPU, on an attached GPU, where launches are allowed; jax 0.10, 0.11 and 0.12.

## Source
The time limit of Pallas LSP itself; jax and CUDA wait for ever.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.device import of_launch, on_device
from pallas_lsp.rules.shared.findings import finding

SINCE = "0.1.0"
CONSTRUCTS = ("GPU verdicts",)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not on_device(fault) or fault.exception != "pallas_lsp.LaunchTimedOut":
        return None
    text = f"This kernel compiles, but on generated inputs {fault.message}: it waits for something that never comes."
    return finding(__name__, fault, context, of_launch(fault, context), text)
