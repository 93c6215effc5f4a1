"""
## What it does
Finds calls of what `pl.run_state` made with another number of arguments than one.

## Why it is wrong
`pl.run_state(body)` is called with one tree of start values, and calls `body` with one tree of refs. Several values are
given as a tuple, and the body takes them out of it. (`pl.run_scoped` is different: it gives its body one ref for each
allocation.)

## Example
```python
def body(acc_ref, max_ref):
    ...

acc, maximum = pl.run_state(body)(plgpu.ACC.init(zeros), start)
```

## Use instead
```python
acc, maximum = pl.run_state(lambda refs: body(*refs))((plgpu.ACC.init(zeros), start))
```

## Fix safety
The fix gives the values as a tuple and takes the refs out of it; it is safe.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`run_state.<locals>.wrapped` in `jax/_src/state/discharge.py`, Python's own TypeError.
"""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.places import call_at
from pallas_lsp.rules.shared.uses import Form, Use, state_use
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators", "outputs and scratch")
SPECIFICITY = 73
_WRONG = re.compile(r"run_state\.<locals>\.wrapped\(\) (?:takes 1 positional argument|missing 1 required)")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not _WRONG.search(fault.message):
        return None
    frames = context.frames(fault)
    spot = call_at(context, frames, len(frames) - 1)
    use = state_use(spot) if spot is not None else None
    if spot is None or use is None or not isinstance(use.call, ast.Call):
        return None
    name = short(spot.syntax.source(use.call.func), 40)
    if not use.call.args:
        return finding(__name__, fault, context, spot.location, f"`{name}` needs the start values of the refs.")
    message = (
        f"`{name}` takes one tree of start values, but gets {len(use.call.args)} arguments: give them as a tuple. "
        "`pl.run_state` calls its body with one argument, too, the tuple of refs."
    )
    location = spot.at(use.call.args[1]).location if len(use.call.args) > 1 else spot.location
    return finding(__name__, fault, context, location, message, (), [_as_tuple(use)])


def _as_tuple(use: Use) -> Fix | None:
    call, maker, function = use.call, use.maker, use.function
    if not isinstance(call, ast.Call) or maker is None or use.form is not Form.DIRECT or call.keywords:
        return None
    if any(isinstance(each, ast.Starred) for each in call.args) or not isinstance(use.body, ast.Name):
        return None
    editor = Editor(use.spot.path, use.syntax)
    editor.insert(use.syntax.span(call.args[0])[0], "(")
    editor.insert(use.syntax.span(call.args[-1])[1], ")")
    if function is not None and len(positional(function)) == len(call.args):
        editor.replace(use.body, f"lambda refs: {use.body.id}(*refs)")
    return safe("Give the start values as a tuple", editor)
