"""
## What it does
Finds waits of TPU kernels for copies that nothing in the kernel starts.

## Why it is wrong
`pltpu.make_async_copy` only describes a copy; `start()` begins it. A wait for a semaphore that no copy signals never
ends.

## Example
```python
copy = pltpu.make_async_copy(x_hbm, buffer, semaphore)
copy.wait()
```

## Use instead
```python
copy = pltpu.make_async_copy(x_hbm, buffer, semaphore)
copy.start()
copy.wait()
```

## Fix safety
Safe: starting the copy before the wait is what was meant.

## Applies to
TPU kernels whose semaphore belongs to the kernel; jax 0.10, 0.11 and 0.12.

## Source
`dma_wait_p` in `jax/_src/pallas/mosaic/primitives.py`; no version checks it.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, silent_finding, spot_of
from pallas_lsp.rules.shared.uncalled import in_body
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("copies", "TPU")
OF_ORDER = True


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "copy-never-started") or in_body(fault, context):
        return None
    spot = spot_of(fault, context)
    where = narrow(spot) if spot is not None else context.locate(fault)
    source = f"`{short(context.source(where), 60)}`" if spot is not None else "This"
    text = f"{source} waits for a copy that nothing in the kernel starts, and never ends: call its `start()` before."
    fix = _start_before(spot) if spot is not None else None
    return silent_finding(__name__, fault, context, where, text, (), [fix], Severity.ERROR)


def _start_before(wait: Spot) -> Fix | None:
    call, syntax = wait.node, wait.syntax
    statement = syntax.statement(call)
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or not isinstance(statement, ast.Expr)
    ):
        return None
    copy = call.func.value
    if statement.value is not call or call.func.attr != "wait" or not isinstance(copy, ast.Name):
        return None
    editor = Editor(wait.path, syntax)
    editor.add_before(statement, f"{copy.id}.start()")
    return safe(f"Start the copy: `{copy.id}.start()`", editor)
