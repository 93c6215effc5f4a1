"""
## What it does
Reports kernels for which the GPU's compiler needs more shared memory than a block of that GPU has.

## Why it is wrong
Triton decides by itself how much shared memory a kernel takes: for operands of `dot`, for layouts that change, and
once more for each stage of a pipelined loop. Only its compiler knows the sum, and it refuses one above the limit
(227 KiB on Hopper and Blackwell, 99 to 163 KiB on Ampere and Ada).

## Example
```python
x = x_ref[...]                       # float32[1024, 256]
o_ref[...] = jnp.dot(x, y_ref[...])  # both operands go through shared memory
```

## Use instead
Smaller blocks, fewer stages (`num_stages`), or a loop over the inner dimension.

## Fix safety
Fewer stages are a suggestion: the kernel computes the same, possibly slower.

## Applies to
Triton, on an attached GPU; jax 0.10, 0.11 and 0.12.

## Source
XLA: "Shared memory size limit exceeded: requested ..., available: ...".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.device import COMPILER, of_launch, on_device
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM", "GPU verdicts")
SITES = (COMPILER,)
_EXCEEDED = re.compile(r"Shared memory size limit exceeded: requested (\d+), available: (\d+)")


def judge(fault: Fault, context: Context) -> Finding | None:
    match = _EXCEEDED.search(fault.message) if on_device(fault) else None
    if match is None:
        return None
    needed, most = (f"{int(size) / 1024:.1f}".removesuffix(".0") + " KiB" for size in match.groups())
    stages = _stages(fault, context)
    value = stages.node.value if stages is not None and isinstance(stages.node, ast.Constant) else None
    number = value if isinstance(value, int) else 0
    pipelined = stages is not None and number > 1
    where = stages.location if stages is not None and pipelined else of_launch(fault, context)
    text = f"This kernel needs {needed} of shared memory, but a block of this GPU has {most}."
    text += f" It holds {number} stages at a time." if pipelined else " Make its blocks smaller."
    fixes = _fixes(stages, number) if stages is not None else ()
    return finding(__name__, fault, context, where, text, (), fixes)


def _stages(fault: Fault, context: Context) -> Spot | None:
    """What ``num_stages`` of the launch's compiler parameters is."""
    launch = launch_of(fault, context)
    given = launch.argument("compiler_params") if launch is not None else None
    value = given.syntax.value(given.node) if given is not None else None
    if given is None or not isinstance(value, ast.Call):
        return None
    found = next((keyword.value for keyword in value.keywords if keyword.arg == "num_stages"), None)
    number = given.syntax.value(found) if found is not None else None
    return given.at(number) if isinstance(number, ast.expr) else None


def _fixes(stages: Spot, number: int) -> Iterator[Fix | None]:
    while number > 1:
        number -= 1
        edits = Editor(stages.path, stages.syntax)
        edits.replace(stages.node, str(number))
        yield suggested(f"Hold {number} stage{'' if number == 1 else 's'} at a time", edits)
