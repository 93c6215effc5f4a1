"""
## What it does
Reports kernels that use instructions or memory that the GPU at hand does not have.

## Why it is wrong
Tensor memory and `tcgen05` are Blackwell's (compute capability 10), `wgmma` is Hopper's (9.0), and asynchronous copies
with barriers came with Hopper. A kernel for one of these generations does not run on another.

## Example
```python
plgpu.tcgen05_mma(acc_tmem, a_smem, b_smem, barrier)  # on a Hopper GPU
```

## Use instead
The instruction of the generation at hand (`plgpu.wgmma` on Hopper), or two kernels and a choice between them. Where the
kernel is meant for another GPU, name that one in the setting `targets`: this GPU is then left out.

## Fix safety
This rule offers no fix.

## Applies to
Mosaic GPU, on an attached GPU; jax 0.10, 0.11 and 0.12.

## Source
ptxas: "not supported on .target sm_90a"; tables of PTX ISA by target architecture.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.device import COMPILER, allocated_in, of_launch, on_device
from pallas_lsp.rules.shared.findings import finding

SINCE = "0.1.0"
CONSTRUCTS = ("GPU verdicts",)
SPECIFICITY = 60
SITES = (COMPILER,)
_NEEDED = re.compile(r"^(?P<what>.*) need compute capability (?P<needed>[\d.]+); (?P<gpu>.*) has (?P<has>[\d.]+)$")
_TARGET = re.compile(
    r"(?:Instruction|Feature|Modifier|Type|Argument|Operand)?\s*'?(?P<what>[^'\n;]*?)'? (?:is )?not supported on "
    r"\.?target '?(?P<target>sm_\w+)'?"
)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not on_device(fault):
        return None
    where = of_launch(fault, context)
    if fault.exception.endswith(".OtherGpuNeeded") and (match := _NEEDED.match(fault.message)) is not None:
        tmem = next(allocated_in(fault, context, "tmem"), None)
        memory = tmem is not None or match["what"] == "its memory spaces"
        used = "tensor memory (TMEM)" if memory else ", ".join(f"`{each}`" for each in match["what"].split(", "))
        text = (
            f"This kernel uses {used}, which needs compute capability {match['needed']}, but {match['gpu']} has "
            f"{match['has']}."
        )
        return finding(__name__, fault, context, tmem or where, text)
    match = _TARGET.search(fault.message)
    if match is None:
        return None
    what = f"`{match['what'].strip()}`" if match["what"].strip() else "an instruction"
    text = f"This kernel uses {what}, which this GPU ({match['target']}) does not have."
    return finding(__name__, fault, context, where, text)
