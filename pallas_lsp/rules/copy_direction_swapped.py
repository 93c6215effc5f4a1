"""
## What it does
Finds copies and prefetches whose source or destination is in the wrong memory: `plgpu.copy_gmem_to_smem` from SMEM,
`plgpu.copy_smem_to_gmem` to SMEM, swapped arguments.

## Why it is wrong
`plgpu.copy_gmem_to_smem(src, dst, barrier)` reads GMEM and writes SMEM; `plgpu.copy_smem_to_gmem(src, dst)` the
reverse. The source comes first in both.

## Example
```python
plgpu.copy_gmem_to_smem(x_smem, x_gmem, barrier)
```

## Use instead
```python
plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
```

## Fix safety
Both fixes are suggestions: swapping the arguments turns the copy round, the other function keeps its direction.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_check_ref` in `jax/_src/pallas/mosaic_gpu/primitives.py`, "must be a GMEM reference".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_copies import Copy, copy_of
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import PLGPU, PRIMITIVES, argument, call_spot, called, operands, place, quoted
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("copies",)
SITES = ((PRIMITIVES, "_check_ref"),)
_MESSAGE = re.compile(r"^(?P<name>\w+) must be a(?:n)? (?P<space>\w+)? ?reference")


def judge(fault: Fault, context: Context) -> Finding | None:
    match = _MESSAGE.match(fault.message)
    if not raised_in(fault, PRIMITIVES, "_check_ref") or match is None:
        return None
    name, wanted = match["name"], match["space"] or ""
    given = operands(fault).get(name)
    spot = call_spot(context, fault)
    function = called(spot.syntax, spot.node) if spot is not None and isinstance(spot.node, ast.Call) else "this"
    source = quoted(context, fault, name, f"`{name}`")
    if given is None or given.space == "value" or not wanted:
        text = f"{source} is no ref, but `{function}` takes a ref{f' in {wanted}' if wanted else ''} as its `{name}`."
        return finding(__name__, fault, context, place(context, fault, name), text)
    copy = copy_of(fault)
    text = f"{source} is in {given.space.upper()}, but `{function}` takes a ref in {wanted} as its `{name}`."
    swapped = copy is not None and copy.gmem.space == "smem" and copy.smem.space in ("gmem", "any")
    if swapped:
        text += " The two arguments are swapped."
    related = given.related(context, f"{source} is allocated here.")
    fixes = _fixes(context, fault, copy) if copy is not None and swapped else ()
    return finding(__name__, fault, context, place(context, fault, name), text, related, fixes)


def _fixes(context: Context, fault: Fault, copy: Copy) -> Iterator[Fix | None]:
    call = call_spot(context, fault, copy.name)
    src, dst = argument(context, fault, "src"), argument(context, fault, "dst")
    if call is None or src is None or dst is None or not isinstance(call.node, ast.Call):
        return
    if src.node in ast.walk(call.node) and dst.node in ast.walk(call.node):
        edits = Editor(call.path, call.syntax)
        edits.replace(src.node, dst.source)
        edits.replace(dst.node, src.source)
        yield suggested("Swap source and destination", edits)
    if len(call.node.args) < 2 or any(isinstance(a, ast.Starred) for a in call.node.args):
        return
    edits = Editor(call.path, call.syntax)
    other = "copy_smem_to_gmem" if copy.name == "copy_gmem_to_smem" else "copy_gmem_to_smem"
    spelled = edits.spell(f"{PLGPU}.{other}", call.node, ALIAS)
    if spelled is None:
        return
    if other == "copy_smem_to_gmem":
        edits.replace(call.node.func, spelled)
        barrier = call.syntax.arguments(call.node).get(2, "barrier")
        keyword = next((k for k in call.node.keywords if k.arg == "barrier"), None)
        if barrier is not None and (keyword is not None or barrier in call.node.args):
            edits.remove_argument(call.node, keyword or barrier)
        yield suggested("Copy from SMEM to GMEM, without a barrier", edits)
