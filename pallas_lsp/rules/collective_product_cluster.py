"""
## What it does
Finds products of two blocks together (`plgpu.tcgen05_mma(..., collective_axis=...)` and commits to their barriers) in
kernels whose cluster is not made for them.

## Why it is wrong
Two neighbouring blocks compute such a product together. They are the two blocks of the last axis of the cluster, which
therefore has exactly the size 2; and a kernel uses the tensor core in this way throughout or not at all.

## Example
```python
plgpu.kernel(body, cluster=(4,), cluster_names=("pair",), ...)
plgpu.tcgen05_mma(acc, a, b, barrier, collective_axis="pair")
```

## Use instead
```python
plgpu.kernel(body, cluster=(2,), cluster_names=("pair",), ...)
```

## Fix safety
A cluster of 2 is suggested: what the blocks share changes with it.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`commit_arrive` in `jax/experimental/mosaic/gpu/tcgen05.py`; `LoweringContext.check_collective` in
`jax/experimental/mosaic/gpu/dialect_lowering.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_operands import MGPU, argument
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("tcgen05", "threads and grids")
SPECIFICITY = 60
_TCGEN05, _DIALECT = f"{MGPU}tcgen05.py", f"{MGPU}dialect_lowering.py"
SITES = (
    (_TCGEN05, "commit_arrive", "Collective arrivals"),
    (_DIALECT, "LoweringContext.check_collective"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    axis = argument(context, fault, "collective_axis")
    place = axis.location if axis is not None else narrowed(context.locate(fault), context)
    launch = launch_of(fault, context)
    cluster = launch.argument("cluster") if launch is not None else None
    if raised_in(fault, _DIALECT, "check_collective"):
        text = (
            "This kernel uses the tensor core for one block here and for a pair of blocks elsewhere: give "
            "`collective_axis` to all of its products, commits and copies into TMEM, or to none."
        )
        return finding(__name__, fault, context, place, text)
    if not raised_in(fault, _TCGEN05, "commit_arrive") or "Collective arrivals" not in fault.message:
        return None
    got = re.search(r"got: (\(.*?\))", fault.message)
    has = f", and this cluster is {got[1]}" if got is not None else ""
    text = (
        f"Two blocks compute this product together: they are the last axis of the cluster, which has the size 2{has}."
    )
    related = [Related(cluster.location, "The cluster is given here.")] if cluster is not None else []
    return finding(__name__, fault, context, place, text, related, _fixes(cluster))


def _fixes(cluster: Spot | None) -> Iterator[Fix | None]:
    node = cluster.syntax.value(cluster.node) if cluster is not None else None
    if cluster is None or not isinstance(node, ast.Tuple | ast.List) or not node.elts:
        return
    editor = Editor(cluster.path, cluster.syntax)
    editor.replace(node.elts[-1], "2")
    yield suggested("Make a cluster of 2 blocks along its last axis", editor)
