"""
## What it does
Finds copies into SMEM without a barrier on GPUs that need one, and with one on GPUs that have none.

## Why it is wrong
On Hopper and Blackwell `plgpu.copy_gmem_to_smem` starts a copy of the copy engine (TMA), which tells by a barrier
that it is done: `plgpu.barrier_wait` on it comes before the first read. GPUs before Hopper copy without one
(`plgpu.wait_gmem_to_smem`, from jax 0.11 on).

## Example
```python
plgpu.copy_gmem_to_smem(x_gmem, x_smem)
```

## Use instead
```python
plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)   # scratch_types=[..., plgpu.Barrier()]
plgpu.barrier_wait(barrier)
```

## Fix safety
The fix gives the copy a barrier that the kernel allocates already; it is a suggestion, since that barrier may count
other arrivals.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_copy_gmem_to_smem_lowering` in `jax/_src/pallas/mosaic_gpu/primitives.py`; `LaunchContext.async_copy` in
`jax/experimental/mosaic/gpu/launch_context.py`; in jax 0.10 the signature of `plgpu.copy_gmem_to_smem`.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_copies import barriers_in
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, call_spot, place
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("copies", "barriers")
SPECIFICITY = 55
SITES = (
    (PRIMITIVES, "_copy_gmem_to_smem_lowering"),
    (f"{MGPU}launch_context.py", "LaunchContext.async_copy"),
)
_WITHOUT = ("without a barrier", "Barriers are required", "missing 1 required positional argument: 'barrier'")
_WITH = ("with a barrier is only supported", "Barriers are unsupported for CP_ASYNC")


def judge(fault: Fault, context: Context) -> Finding | None:
    message = fault.message
    here = raised_in(fault, PRIMITIVES, "_copy_gmem_to_smem_lowering") or raised_in(
        fault, f"{MGPU}launch_context.py", "async_copy"
    )
    none_given = "'None'" in message and "not a valid JAX type" in message
    if not here and "copy_gmem_to_smem() missing" not in message and not none_given:
        return None
    call = call_spot(context, fault, "copy_gmem_to_smem")
    if call is None or not isinstance(call.node, ast.Call):
        return None
    if any(text in message for text in _WITH):
        text = "This copy has a barrier, but GPUs before Hopper copy without one: wait with `plgpu.wait_gmem_to_smem`."
        return finding(__name__, fault, context, place(context, fault, "barrier"), text)
    given = call.syntax.arguments(call.node).get(2, "barrier")
    absent = given is None or (isinstance(given, ast.Constant) and given.value is None)
    if not (any(text in message for text in _WITHOUT) or none_given) or not absent:
        return None
    text = (
        "This copy has no barrier: on Hopper and Blackwell it runs on while the kernel goes on, and tells by a barrier "
        "that it is done. Allocate a `plgpu.Barrier()`, give it to the copy and wait on it before the first read."
    )
    location = call.at(call.node.func).location if given is None else call.at(given).location
    return finding(__name__, fault, context, location, text, (), [_fix(call.path, call.syntax, call.node, given)])


def _fix(path: str, syntax: Syntax, call: ast.Call, given: ast.expr | None) -> Fix | None:
    """The barrier of the same function."""
    function = syntax.function(call)
    if function is None:
        return None
    names = barriers_in(syntax, function)
    if len(names) != 1:
        return None
    edits = Editor(path, syntax)
    name = names[0]
    if given is not None:
        edits.replace(given, name)
    elif call.keywords:
        edits.insert_argument(call, f"barrier={name}")
    else:
        edits.insert_argument(call, name)
    return suggested(f"Give the copy the barrier `{name}`", edits)
