"""
## What it does
Reports kernels that the GPU compiled but that failed when they were launched.

## Why it is wrong
The launch ran the kernel once, on generated inputs, and the driver ended it. An illegal address is an access outside of
an array; a misaligned address an offset that the instruction does not take; a launch that is refused from the start
has sizes that the GPU does not have.

## Example
```python
plgpu.store(o_ref.at[far_away], x)  # an index outside of the array
```

## Use instead
What the message names. For an illegal address, compare the indices with the shapes of the arrays; inputs that are
indices are zeros in a generated launch.

## Fix safety
This rule offers no fix.

## Applies to
Triton and Mosaic GPU, on an attached GPU, where launches are allowed; jax 0.10, 0.11 and 0.12.

## Source
The CUDA driver's errors (`CUDA_ERROR_...`), as XLA passes them on.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.device import of_launch, on_device
from pallas_lsp.rules.shared.findings import finding

SINCE = "0.1.0"
CONSTRUCTS = ("GPU verdicts",)
SPECIFICITY = 20
_CODE = re.compile(r"CUDA_ERROR_(\w+)")
_MEANING = {
    "ILLEGAL_ADDRESS": "it accesses memory outside of its arrays",
    "MISALIGNED_ADDRESS": "it accesses an address that is not a multiple of what the instruction needs",
    "ILLEGAL_INSTRUCTION": "it executes an instruction that is not valid there",
    "INVALID_ADDRESS_SPACE": "an instruction gets an address of another memory space than its own",
    "INVALID_PC": "it jumps to where no code is",
    "HARDWARE_STACK_ERROR": "its call stack is broken or too deep",
    "LAUNCH_OUT_OF_RESOURCES": "it needs more registers or threads for each block than the GPU has",
    "INVALID_VALUE": "the driver does not take the sizes of the launch (grid, cluster, threads, shared memory)",
    "LAUNCH_TIMEOUT": "the driver ended it because it took too long",
    "ASSERT": "an assertion in it does not hold",
    "LAUNCH_FAILED": "it was ended by the GPU while it ran",
    "COOPERATIVE_LAUNCH_TOO_LARGE": "its blocks do not all fit on the GPU at the same time",
}


def judge(fault: Fault, context: Context) -> Finding | None:
    code = _CODE.search(fault.message) if on_device(fault) else None
    if code is None:
        return None
    meaning = _MEANING.get(code[1])
    reason = f"{meaning} ({code[0]})" if meaning is not None else code[0]
    text = f"This kernel compiles, but its launch on generated inputs fails: {reason}."
    return finding(__name__, fault, context, of_launch(fault, context), text)
