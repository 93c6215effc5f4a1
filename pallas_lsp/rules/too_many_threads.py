"""
## What it does
Finds launches with more than 8 warpgroups in a block, which lower and compile but can be launched on no GPU.

## Why it is wrong
A block has at most 1024 CUDA threads. A thread of Mosaic GPU is a warpgroup, 128 of them, so that `num_threads` is at
most 8. jax does not check it (0.12 refuses 16 and more, for want of barriers), and the launch fails with
`CUDA_ERROR_INVALID_VALUE`.

## Example
```python
plgpu.kernel(body, out_type=..., num_threads=16, thread_name="wg")
```

## Use instead
At most 8 threads for each block, and more blocks:
```python
plgpu.kernel(body, out_type=..., grid=(2,), grid_names=("g",), num_threads=8, thread_name="wg")
```

## Fix safety
This rule offers no fix: the work of the other threads has to go somewhere.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`cuLaunchKernelEx`, "invalid argument"; no version of jax compares `num_threads` with the limit.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.device import of_launch, on_device
from pallas_lsp.rules.shared.gpu_mesh import mesh_of
from pallas_lsp.rules.shared.silent import checked, silent_finding

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
SPECIFICITY = 60
_WARPGROUP, _MOST = 128, 1024


def judge(fault: Fault, context: Context) -> Finding | None:
    threads = fault.facts.get("num_threads") or mesh_of(fault).get("num_threads")
    if not isinstance(threads, int) or threads * _WARPGROUP <= _MOST:
        return None
    refused = on_device(fault) and "CUDA_ERROR_INVALID_VALUE" in fault.message
    if not refused and not checked(fault, "too-many-threads"):
        return None
    text = (
        f"{threads} warpgroups are {threads * _WARPGROUP} CUDA threads, but a block has at most {_MOST}: "
        f"`num_threads` can be {_MOST // _WARPGROUP} at most."
    )
    where = of_launch(fault, context, "num_threads")
    return silent_finding(__name__, fault, context, where, text, severity=Severity.ERROR)
