"""
## What it does
Finds clusters of more than 16 thread blocks, which lower and compile but can be launched on no GPU.

## Why it is wrong
The blocks of a cluster run at the same time on neighbouring multiprocessors. Every GPU with clusters takes 8 of them;
Hopper and Blackwell take up to 16 where enough multiprocessors are free. jax does not compare the sizes with the
limit, so that the kernel fails only when it is launched (`CUDA_ERROR_INVALID_CLUSTER_SIZE`).

## Example
```python
plgpu.kernel(body, out_type=..., cluster=(32,), cluster_names=("c",))
```

## Use instead
At most 16 blocks over all axes of the cluster, and the rest as axes of the grid:
```python
plgpu.kernel(body, out_type=..., grid=(4,), grid_names=("g",), cluster=(8,), cluster_names=("c",))
```

## Fix safety
This rule offers no fix: which axes become axes of the grid is for the author to say.

## Applies to
Mosaic GPU on Hopper and Blackwell; jax 0.10, 0.11 and 0.12. On a GPU also what a launch says of a smaller cluster.

## Source
`cuLaunchKernelEx`, "invalid cluster size"; no version of jax looks at the product of `cluster`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.device import of_launch, on_device
from pallas_lsp.rules.shared.gpu_mesh import mesh_of
from pallas_lsp.rules.shared.silent import checked, silent_finding

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
_PORTABLE, _MOST = 8, 16


def judge(fault: Fault, context: Context) -> Finding | None:
    refused = on_device(fault) and "CUDA_ERROR_INVALID_CLUSTER_SIZE" in fault.message
    if not refused and not checked(fault, "cluster-too-large"):
        return None
    given = fault.facts.get("cluster") or mesh_of(fault).get("cluster") or ()
    sizes = [size for size in given if isinstance(size, int)] if isinstance(given, Sequence) else []
    blocks = math.prod(sizes)
    product = " x ".join(map(str, sizes)) + f" = {blocks} blocks" if len(sizes) > 1 else f"{blocks} blocks"
    if not sizes:
        text = f"This cluster is too large for the GPU: {_PORTABLE} blocks always fit, {_MOST} are the most."
    elif blocks > _MOST:
        text = f"A cluster of {product} cannot be launched: a GPU takes at most {_MOST}, and always only {_PORTABLE}."
    else:
        text = f"This GPU does not take a cluster of {product}; only {_PORTABLE} always fit."
    where = of_launch(fault, context, "cluster")
    return silent_finding(__name__, fault, context, where, text, severity=Severity.ERROR)
