"""
## What it does
Finds copies between GMEM and SMEM that are longer than 256 elements in a dimension.

## Why it is wrong
The GPU's copy engine (TMA) moves boxes of at most 256 elements in each dimension. Tiles count as dimensions of their
own: a ref in SMEM with `transforms=(plgpu.TilingTransform((8, 64)), ...)` is copied in boxes of its tiles.

## Example
```python
buffer = plgpu.SMEM((1024,), jnp.float32)
plgpu.copy_gmem_to_smem(x_gmem, buffer, barrier)
```

## Use instead
Smaller blocks, several copies on one barrier with as many arrivals, or a two-dimensional view:

```python
for part in range(4):
    span = pl.ds(part * 256, 256)
    plgpu.copy_gmem_to_smem(x_gmem.at[span], buffer.at[span], barrier)   # plgpu.Barrier(num_arrivals=4)
```

## Fix safety
The fixes are suggestions: smaller blocks change how much a program of the grid works on; several copies need a
barrier of their own.

## Applies to
Mosaic GPU on Hopper and Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`LaunchContext.async_copy` in `jax/experimental/mosaic/gpu/launch_context.py`, "<=256 elements along each dimension".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_copies import Copy, copy_of
from pallas_lsp.rules.shared.gpu_mma import set_keyword
from pallas_lsp.rules.shared.gpu_operands import MGPU, argument, call_spot, operands, place, quoted, shape_text
from pallas_lsp.rules.shared.gpu_sizes import resized
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("copies",)
SITES = ((f"{MGPU}launch_context.py", "LaunchContext.async_copy"),)
_MOST = 256
_SLICE = re.compile(r"<=256 elements along each dimension, got \(([\d, ]+)\)")


def judge(fault: Fault, context: Context) -> Finding | None:
    copy = copy_of(fault)
    match = _SLICE.search(fault.message)
    if copy is None or not raised_in(fault, f"{MGPU}launch_context.py", "async_copy") or match is None:
        return None
    shape = tuple(int(part) for part in match[1].split(",") if part.strip())
    whole = copy.smem.shape or shape
    long = [d for d in whole if d > _MOST] or [d for d in shape if d > _MOST]
    source = quoted(context, fault, "src" if copy.smem is copy.src else "dst", "The ref in SMEM")
    tiles = "" if len(shape) == len(whole) else f" (as tiles {shape_text(shape)})"
    text = (
        f"{source} is {shape_text(whole)}{tiles}: {long[0]} elements in one dimension, but a copy between GMEM and "
        f"SMEM moves at most {_MOST} in each."
    )
    related = copy.smem.related(context, f"{source} is allocated here.")
    location = place(context, fault, "src" if copy.smem is copy.src else "dst")
    return finding(__name__, fault, context, location, text, related, _fixes(context, fault, copy))


def _fixes(context: Context, fault: Fault, copy: Copy) -> Iterator[Fix | None]:
    made = copy.smem.allocation
    shape = copy.smem.shape
    if shape is None or made is None:
        return
    dimension = next((i for i, d in enumerate(shape) if d > _MOST), None)
    if dimension is None:
        return
    size = shape[dimension]
    if size % _MOST == 0:
        yield _in_parts(context, fault, copy, dimension, size // _MOST)
    if len(made.shape) == len(shape) and made.shape[dimension] == size:
        yield from resized(made.spot(context), dimension, size, _MOST, "the most that one copy moves")


def _in_parts(context: Context, fault: Fault, copy: Copy, dimension: int, count: int) -> Fix | None:
    """Several copies, unrolled, on a barrier that waits for all of them."""
    call = call_spot(context, fault, copy.name)
    src, dst = argument(context, fault, "src"), argument(context, fault, "dst")
    if call is None or src is None or dst is None:
        return None
    syntax = call.syntax
    statement = syntax.statement(call.node)
    if not isinstance(statement, ast.Expr) or not isinstance(src.node, ast.Name) or not isinstance(dst.node, ast.Name):
        return None
    if syntax.range(statement).start.line != syntax.range(statement).end.line:
        return None
    editors = {call.path: Editor(call.path, syntax)}
    edits = editors[call.path]
    slices = edits.spell("jax.experimental.pallas.ds", call.node, ("jax.experimental.pallas", "pl"))
    if slices is None:
        return None
    index = ", ".join([":"] * dimension + [f"{slices}(part * {_MOST}, {_MOST})"])
    pieces = {src.node: f"{src.source}.at[{index}]", dst.node: f"{dst.source}.at[{index}]"}
    start, end = syntax.span(call.node)
    text, at = "", start
    for node in sorted(pieces, key=lambda n: syntax.span(n)[0]):
        first, last = syntax.span(node)
        text += syntax.text[at:first] + pieces[node]
        at = last
    text += syntax.text[at:end]
    line = syntax.lines[syntax.range(statement).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    edits.replace(statement, f"for part in range({count}):{syntax.lines.newline}{indent}    {text}")
    barrier = operands(fault).get("barrier")
    if copy.name == "copy_gmem_to_smem":
        made = barrier.allocation if barrier is not None else None
        spot = made.spot(context) if made is not None else None
        if made is None or spot is None or not isinstance(spot.node, ast.Call):
            return None
        arrivals = int(made.facts.get("num_arrivals") or 1) - 1 + count
        set_keyword(
            editors.setdefault(spot.path, Editor(spot.path, spot.syntax)),
            spot.node,
            "num_arrivals",
            str(arrivals),
            position=0,
        )
    return suggested(f"Copy it in {count} parts of {_MOST}, for which the barrier waits", *editors.values())
