"""
## What it does
Finds `pl.CostEstimate` with numbers that are no integers.

## Why it is wrong
Operations and bytes are counted in whole numbers; `1e9` and the result of a true division are floats.

## Example
```python
pl.CostEstimate(flops=2e9, transcendentals=0, bytes_accessed=n * 4 / 2)
```

## Use instead
```python
pl.CostEstimate(flops=2_000_000_000, transcendentals=0, bytes_accessed=n * 4 // 2)
```

## Fix safety
Writing the integer that a float stands for is safe. `//` and `int(...)` are suggestions.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`CostEstimate.__post_init__` in `jax/_src/pallas/core.py`, "All fields in CostEstimate must be ints".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.arithmetic import integer_edits
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("compiler parameters",)
SITES = (("jax/_src/pallas/core.py", "CostEstimate.__post_init__"),)

_FIELDS = ("flops", "transcendentals", "bytes_accessed", "remote_bytes_transferred")
_FIELD = re.compile(r"(\w+) is not an int")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/core.py", "__post_init__") or "CostEstimate" not in fault.message:
        return None
    line = line_of(fault, context)
    match = _FIELD.search(fault.message)
    if line is None or match is None or not isinstance(line.node, ast.Call):
        return None
    value = line.syntax.argument(line.node, _FIELDS.index(match[1]) if match[1] in _FIELDS else None, match[1])
    location = line.at(value) if value is not None else line.location
    what = f"`{short(context.source(location), 40)}`" if value is not None else "A number"
    message = f"{what} is no integer, but `{match[1]}` of a cost estimate counts in whole numbers."
    return finding(__name__, fault, context, location, message, (), _fixes(line, line.node))


def _fixes(line: Line, call: ast.Call) -> Iterator[Fix | None]:
    """All fields at once: jax names only the first."""
    editor, exact = Editor(line.path, line.syntax), True
    for value in (*call.args, *(k.value for k in call.keywords)):
        edits = next((edits for _, edits in integer_edits(line.syntax, value)), None)
        literal = line.syntax.value(value)
        if isinstance(literal, ast.Constant) and isinstance(literal.value, int):
            continue
        if edits is not None:
            exact = exact and isinstance(literal, ast.Constant)
            for target, text in edits:
                editor.replace(target, text)
        elif not isinstance(literal, ast.Constant):
            continue
    yield (safe if exact else suggested)("Write integers", editor)
