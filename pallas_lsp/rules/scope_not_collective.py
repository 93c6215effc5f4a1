"""
## What it does
Finds `pl.run_scoped` that allocates SMEM, TMEM or barriers in a kernel with several threads without saying that they
share it, or with an axis that is not that of the threads.

## Why it is wrong
In a kernel with `num_threads=` every thread runs the body. Shared memory is allocated for the whole block at compile
time, so all threads have to take part in it: `collective_axes="wg"`, the `thread_name` of the launch. Memory that one
thread alone needs is allocated for each, with one more dimension (`buffer.at[thread]`), or in the scratch types.

## Example
```python
pl.run_scoped(step, plgpu.SMEM((128, 128), jnp.float32))
```

## Use instead
```python
pl.run_scoped(step, plgpu.SMEM((128, 128), jnp.float32), collective_axes="wg")
```

## Fix safety
Sharing is a suggestion: all threads then write to the same memory, and every thread has to reach the scope.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_run_scoped_lowering_rule` and `_run_scoped_resource_estimator` in `jax/_src/pallas/mosaic_gpu/lowering.py`, "Only
thread-collective allocations are supported".
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mesh import mesh_of, repr_name
from pallas_lsp.rules.shared.gpu_mma import set_keyword
from pallas_lsp.rules.shared.gpu_operands import LOWERING, call_spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM",)
SITES = ((LOWERING, "_run_scoped_lowering_rule"), (LOWERING, "_run_scoped_resource_estimator"))


def judge(fault: Fault, context: Context) -> Finding | None:
    here = raised_in(fault, LOWERING, "_run_scoped_lowering_rule", "_run_scoped_resource_estimator")
    if not here or "thread-collective" not in fault.message:
        return None
    thread = mesh_of(fault).get("thread_name")
    call = call_spot(context, fault, "run_scoped")
    location = narrowed(context.locate(fault), context)
    given = None
    if call is not None and isinstance(call.node, ast.Call):
        given = call.syntax.arguments(call.node).keywords.get("collective_axes")
    name = repr_name(thread) if isinstance(thread, str) else None
    if call is not None and given is not None:
        location = call.at(given).location
        known = (
            f"the threads' axis is {name}" if name else "this kernel has no threads (`num_threads=`, `thread_name=`)"
        )
        text = f"`collective_axes={call.syntax.source(given)}` is not the axis of the threads: {known}."
    else:
        if call is not None and isinstance(call.node, ast.Call):
            location = call.at(call.node.func).location
        text = (
            "This scope allocates memory of the whole block in a kernel with several threads: all threads share it, "
            f"which has to be said with `collective_axes={name or '...'}`."
        )
    fixes: list[Fix | None] = []
    if call is not None and isinstance(call.node, ast.Call):
        edits = Editor(call.path, call.syntax)
        if name is not None:
            set_keyword(edits, call.node, "collective_axes", name)
            fixes.append(suggested(f"Share it among the threads: `collective_axes={name}`", edits))
        else:
            keyword = next((k for k in call.node.keywords if k.arg == "collective_axes"), None)
            if keyword is not None:
                edits.remove_argument(call.node, keyword)
                fixes.append(suggested("Leave `collective_axes` out", edits))
    return finding(__name__, fault, context, location, text, (), fixes)
