"""
## What it does
Finds kernels that allocate more shared memory (SMEM) or tensor memory (TMEM) than a block of the GPU has, with a
table of what they allocate.

## Why it is wrong
A block has at most 227 KiB of shared memory on Hopper and Blackwell, and 512 columns of TMEM on Blackwell, allocated
in powers of two. The scratch types of a launch, the scopes of `pl.run_scoped` that are alive at the same time and the
buffers of pipelines (one for each concurrent step) share it.

## Example
```python
scratch_types=[plgpu.SMEM((256, 256), jnp.float32), plgpu.SMEM((128, 128), jnp.float32)]
```

## Use instead
Smaller blocks, fewer concurrent steps of a pipeline, narrower element types, or one allocation used twice
(`plgpu.RefUnion`).

## Fix safety
The fixes make a block smaller or buffer fewer steps; they are suggestions.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_launch` in `jax/experimental/mosaic/gpu/core.py`, "exceeds available shared memory", "Total TMEM allocation
exceeds"; `_slice_smem` in `jax/experimental/mosaic/gpu/dialect_lowering.py`; `tmem_alloc_exact_ncols` in
`jax/experimental/mosaic/gpu/tcgen05.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_operands import MGPU, shape_text
from pallas_lsp.rules.shared.gpu_sizes import shape_of
from pallas_lsp.rules.shared.launches import born
from pallas_lsp.rules.shared.operand_refs import notation
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM",)
SITES = (
    (f"{MGPU}core.py", "_launch"),
    (f"{MGPU}dialect_lowering.py", "_slice_smem"),
    (f"{MGPU}tcgen05.py", "tmem_alloc_exact_ncols"),
)
_SHOWN = 8


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    given = [a for a in fault.facts.get("allocations") or () if isinstance(a, Mapping)]
    if site is None or not given or (site.file, site.function.rpartition(".")[2]) not in SITES:
        return None
    tmem = given[0].get("memory_space") == "tmem"
    unit = "columns" if tmem else "bytes"
    total = int(fault.facts.get(f"requested_{unit}") or sum(int(a.get("size", 0)) for a in given))
    limit = fault.facts.get(f"limit_{unit}")
    spots = [born(context, a.get("frames")) for a in given]
    first = spots[0]
    location = narrowed(first.location, context) if first is not None else context.locate(fault)
    memory = "tensor memory (TMEM)" if tmem else "shared memory (SMEM)"
    of = f", but a block of this GPU has {_amount(int(limit), tmem)}" if isinstance(limit, int) else ""
    text = f"This kernel needs {_amount(total, tmem)} of {memory}{of}. It allocates:\n{_table(given, spots, tmem)}"
    if tmem:
        text += "\nColumns are allocated in powers of two."
    related = list(_related(context, given, spots, location, tmem))
    return finding(__name__, fault, context, location, text, related, _fixes(given, spots, total, limit))


def _amount(size: int, tmem: bool) -> str:
    if tmem:
        return f"{size} columns"
    return f"{size / 1024:.1f} KiB ({size} bytes)" if size >= 1024 else f"{size} bytes"


def _table(given: Sequence[Mapping[str, Any]], spots: Sequence[Spot | None], tmem: bool) -> str:
    rows = []
    for entry, spot in zip(given[:_SHOWN], spots, strict=False):
        size = int(entry.get("size", 0))
        amount = f"{size:>5} columns" if tmem else f"{size:>8} bytes"
        shape = entry.get("shape") or []
        kind = "barrier" if "arrier" in str(entry.get("dtype")) else notation(_dtype(entry), shape)
        where = f"line {spot.location.range.start.line + 1}: " if spot is not None else ""
        rows.append(f"  {amount}  {kind:<18} {where}{short(spot.source, 50) if spot is not None else entry['what']}")
    if len(given) > _SHOWN:
        rest = sum(int(e.get("size", 0)) for e in given[_SHOWN:])
        rows.append(f"  {rest:>8} {'columns' if tmem else 'bytes'}  in {len(given) - _SHOWN} more")
    return "\n".join(rows)


def _dtype(entry: Mapping[str, Any]) -> str:
    return str(entry.get("dtype", ""))


def _related(
    context: Context, given: Sequence[Mapping[str, Any]], spots: Sequence[Spot | None], first: Location, tmem: bool
) -> Iterator[Related]:
    seen = {first}
    for entry, spot in zip(given, spots, strict=True):
        place = narrowed(spot.location, context) if spot is not None else None
        if place is not None and place not in seen and int(entry.get("size", 0)) > 64 * (not tmem):
            seen.add(place)
            yield Related(place, f"This takes {_amount(int(entry['size']), tmem)}.")
        if len(seen) > 4:
            return


def _fixes(
    given: Sequence[Mapping[str, Any]], spots: Sequence[Spot | None], total: int, limit: object
) -> Iterator[Fix | None]:
    """Fewer steps of a pipeline, or the largest allocation with half the rows."""
    for spot in dict.fromkeys(s for s in spots if s is not None):
        yield from _fewer_steps(spot, given, total, limit)
    entry, largest = given[0], spots[0]
    shape = entry.get("shape") or []
    node = shape_of(largest) if largest is not None else None
    if largest is None or node is None or not shape or not isinstance(limit, int):
        return
    half = list(shape)
    longest = max(range(len(half)), key=lambda i: half[i])
    if total - int(entry.get("size", 0)) // 2 > limit or half[longest] % 2:
        return
    half[longest] //= 2
    element = node.elts[longest] if longest < len(node.elts) else None
    value = largest.syntax.value(element) if element is not None else None
    if element is None or value is element or not isinstance(value, ast.Constant):
        return
    edits = Editor(largest.path, largest.syntax)
    edits.replace(value, str(half[longest]))
    yield suggested(f"Halve the largest block: {shape_text(half)}", edits)


def _fewer_steps(spot: Spot, given: Sequence[Mapping[str, Any]], total: int, limit: object) -> Iterator[Fix | None]:
    """``max_concurrent_steps`` of the pipeline that an expression makes or runs, as many as there is room for."""
    run = spot.node
    made = spot.syntax.value(run.func) if isinstance(run, ast.Call) else None
    for call in [n for part in (run, made) if part is not None for n in ast.walk(part) if isinstance(n, ast.Call)]:
        steps = next((k.value for k in call.keywords if k.arg == "max_concurrent_steps"), None)
        if steps is None:
            continue
        buffers = [e for e in given if len(e.get("shape") or ()) > 1]
        counts = {int(e["shape"][0]) for e in buffers if str(e["shape"][0]).isdigit()}
        have = max(counts, default=0)
        each = sum(int(e["size"]) // have for e in buffers if int(e["shape"][0]) == have) if have else 0
        value = spot.syntax.value(steps)
        target = value if isinstance(value, ast.Constant) else steps
        number = have - 1
        if isinstance(limit, int) and each:
            number = min(number, have - -(-(total - limit) // each))
        while number >= 1:
            edits = Editor(spot.path, spot.syntax)
            edits.replace(target, str(number))
            yield suggested(f"Buffer {number} step{'s' if number > 1 else ''} of the pipeline at a time", edits)
            number //= 2
        return
