"""
## What it does
Reports kernels whose PTX the GPU's assembler (ptxas) refuses.

## Why it is wrong
What a kernel lowers to is PTX, which ptxas assembles for the GPU at hand. It refuses what does not exist or does not
fit there: most often text of the author's own in inline assembly, else a limit of the hardware (registers, shared
memory).

## Example
```python
plgpu.elementwise_inline_asm("addd.f32 $0, $1, $2;", ...)  # there is no instruction addd
```

## Use instead
Instructions of the PTX ISA for the GPU at hand. Where the kernel holds no assembly of its own, it is a limit that the
message names, or a fault of jax.

## Fix safety
This rule offers no fix.

## Applies to
Triton and Mosaic GPU, on an attached GPU; jax 0.10, 0.11 and 0.12.

## Source
ptxas, "exited with non-zero error code".
"""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Fault, Finding, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.device import COMPILER, of_launch, on_device
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.source.syntax import FUNCTIONS

SINCE = "0.1.0"
CONSTRUCTS = ("GPU verdicts",)
SITES = (COMPILER,)
_ERROR = re.compile(r"(?:line \d+; )?error\s*: +(?P<what>[^\n]+)")
_FATAL = re.compile(r"ptxas fatal\s*: +(?P<what>[^\n]+)")
_WORD = re.compile(r"[\w.]+")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not on_device(fault) or "ptxas" not in fault.message:
        return None
    match = _ERROR.search(fault.message) or _FATAL.search(fault.message)
    if match is None:
        return None
    what = match["what"].strip().rstrip(".")
    where = _assembly(fault, context, re.findall(r"'([^']+)'", what))
    text = f"The GPU's assembler (ptxas) refuses this kernel: {what}."
    if where is None:
        text += " The kernel's own text names nothing of the kind: it comes from what jax generates."
    return finding(__name__, fault, context, where or of_launch(fault, context), short(text, 600))


def _assembly(fault: Fault, context: Context, named: list[str]) -> Location | None:
    """The text in the kernel, or in the file around it, that holds what the assembler names."""
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if body is None or not named:
        return None
    path, syntax, function = body
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    helpers = [n for n in syntax.nodes if isinstance(n, FUNCTIONS) and getattr(n, "name", "") in used]
    for root in (function, *helpers, syntax.tree):
        for node in ast.walk(root):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _holds(node.value, named):
                return Location(path, syntax.range(node))
    return None


def _holds(text: str, named: list[str]) -> bool:
    words = {word for found in _WORD.findall(text) for word in (found, *found.split("."))}
    return ";" in text and any(name in words for name in named)
