"""
## What it does
Reports a comment `# pallas: entry(...)` that does not give a kernel its argument types.

## Why it is wrong
The comment is how you say with which types a kernel is checked, where nothing in the workspace calls it. A comment that
is no call, names no function of the file, gives types that the function itself refuses, or leads to no launch checks
nothing.

## Example
```python
# pallas: matmul(bf16[512,256], bf17[256,128])
def matmul(x, y): ...
```

## Use instead
```python
# pallas: matmul(bf16[512,256], bf16[256,128], block_m=64)
def matmul(x, y, *, block_m): ...
```
Array types are in JAX's notation (`f32[]` is a scalar). Every other value is an expression, evaluated in the file, so
`config=TuningConfig(...)` works, and so does `# pallas: matmul(*types())` with a function that returns
`jax.ShapeDtypeStruct` objects. Several comments are all checked. Where a test or script calls the function, a code
action at the launch writes the comment.

## Fix safety
This rule offers no fix.

## Applies to
All backends and all supported versions of jax.

## Source
`pallas_lsp/source/shape_comments.py` and `pallas_lsp/worker/calls.py`; the notation is that of jax's programs.
"""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Location, Severity, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.source.shape_comments import find_comments
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("shape comments",)
SPECIFICITY = 95


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    del context
    for comment in find_comments(syntax):
        if comment.error:
            message = f"This comment gives no argument types: {comment.error}."
            yield Finding(
                rule_name(__name__), Location(path, comment.range), message, Severity.WARNING, stage=Stage.READ
            )


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.exception != "pallas_lsp.ShapeComment":
        return None
    place = context.locate(fault)
    syntax = context.syntax(place.path)
    line = place.range.start.line
    ranges = [c.range for c in find_comments(syntax) if c.range.start.line == line] if syntax is not None else []
    return Finding(
        rule_name(__name__),
        Location(place.path, ranges[0] if ranges else place.range),
        f"The kernel cannot be checked with these argument types: {fault.message}.",
        Severity.WARNING,
        stage=fault.stage,
    )
