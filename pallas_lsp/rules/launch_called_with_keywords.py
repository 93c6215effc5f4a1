"""
## What it does
Finds kernels that are called with keyword arguments.

## Why it is wrong
What `pl.pallas_call(...)` returns takes the kernel's inputs by position: the order says which ref is which.

## Example
```python
pl.pallas_call(kernel, out_shape=out)(x=x, y=y)
```

## Use instead
```python
pl.pallas_call(kernel, out_shape=out)(x, y)
```

## Fix safety
Giving the arguments by position, in the order in which they are written, is a suggestion.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Python's own TypeError for `wrapped` in `jax/_src/pallas/pallas_call.py` and `wrapper` in `jax/_src/pallas/mpmd.py`.
"""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Fault, Finding, Fix, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches",)
SPECIFICITY = 60

_CALL = re.compile(r"<locals>\.(?:wrapped|wrapper)\(\) got an unexpected keyword argument '(\w+)'")


def judge(fault: Fault, context: Context) -> Finding | None:
    match = _CALL.search(fault.message)
    launch = launch_of(fault, context) if match is not None else None
    run = launch.run() if launch is not None else None
    if launch is None or match is None or run is None or not isinstance(run.node, ast.Call):
        return None
    syntax = run.syntax
    named = [k for k in run.node.keywords if k.arg is not None]
    keyword = next((k for k in named if k.arg == match.group(1)), None)
    if keyword is None:
        return None
    start = syntax.span(keyword)[0]
    location = Location(run.path, syntax.lines.range(start, start + len(match.group(1))))
    message = "A kernel takes its inputs by position, not by name: the order says which ref is which."
    editor = Editor(run.path, syntax)
    for each in named:
        editor.delete(syntax.span(each)[0], syntax.span(each.value)[0])
    fixes: list[Fix | None] = [suggested("Give the inputs by position", editor)]
    return finding(__name__, fault, context, location, message, (), fixes)
