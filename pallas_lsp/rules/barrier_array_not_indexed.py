"""
## What it does
Finds operations on a single barrier that are given a whole array of barriers.

## Why it is wrong
`plgpu.Barrier(num_barriers=2)` allocates an array of barriers. Waiting, arriving and copying work on one of them:
`barriers.at[0]`.

## Example
```python
plgpu.barrier_wait(barriers)          # barriers = plgpu.Barrier(num_barriers=2)
```

## Use instead
```python
plgpu.barrier_wait(barriers.at[0])
plgpu.barrier_wait(barriers.at[1])
```

## Fix safety
The fixes are suggestions: which barrier is meant the kernel does not tell. A wait can be made a wait for all of them.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`BarrierRef.get_ptr` and `CtaBarrierRef.get_barrier_id` in `jax/experimental/mosaic/gpu/utils.py`, "Operation is only
valid for a single barrier"; `_async_store_smem_abstract_eval` in `jax/_src/pallas/mosaic_gpu/primitives.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import set_keyword
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, Operand, argument, call_spot, operands, place, quoted
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("barriers",)
SITES = (
    (f"{MGPU}utils.py", "BarrierRef.get_ptr"),
    (f"{MGPU}utils.py", "CtaBarrierRef.get_barrier_id"),
    (f"{MGPU}utils.py", "CollectiveBarrierRef.arrive"),
    (PRIMITIVES, "_async_store_smem_abstract_eval"),
)
_COUNT = re.compile(r"contains (\d+)")
_MOST = 8


def judge(fault: Fault, context: Context) -> Finding | None:
    raised = raised_in(fault, f"{MGPU}utils.py", "get_ptr", "get_barrier_id") or (
        raised_in(fault, f"{MGPU}utils.py", "arrive") and "single barrier" in fault.message
    )
    if not raised and not (
        raised_in(fault, PRIMITIVES, "_async_store_smem_abstract_eval") and "single barrier" in fault.message
    ):
        return None
    barrier = _barrier(fault)
    match = _COUNT.search(fault.message)
    count = int(match[1]) if match else (barrier.shape or (0,))[0] if barrier is not None else 0
    source = quoted(context, fault, "barrier", "The barrier")
    if barrier is not None and count == 0:
        text = f"{source} is an empty array of barriers (`num_barriers=0`): there is none to work on."
    else:
        text = (
            f"{source} is an array of {count} barriers, but this works on one of them: `.at[0]` to `.at[{count - 1}]`."
        )
    related = barrier.related(context, f"It is allocated here, with {count} barriers.") if barrier is not None else ()
    fixes = list(_fixes(context, fault, barrier, count)) if barrier is not None else []
    return finding(__name__, fault, context, place(context, fault, "barrier"), text, related, fixes)


def _barrier(fault: Fault) -> Operand | None:
    found = operands(fault)
    return next((o for o in found.values() if "barrier" in o.dtype and o.shape), None) or next(
        (o for o in found.values() if "barrier" in o.dtype), None
    )


def _fixes(context: Context, fault: Fault, barrier: Operand, count: int) -> Iterator[Fix | None]:
    given, call = argument(context, fault, "barrier"), call_spot(context, fault)
    if given is None or call is None:
        return
    if count == 0 and barrier.allocation is not None:
        made = barrier.allocation.spot(context)
        if made is not None and isinstance(made.node, ast.Call):
            edits = Editor(made.path, made.syntax)
            set_keyword(edits, made.node, "num_barriers", "1")
            yield suggested("Allocate one barrier", edits)
        return
    made = barrier.allocation.spot(context) if barrier.allocation is not None else None
    if made is not None and isinstance(made.node, ast.Call) and not _indexed_somewhere(given):
        keyword = next((k for k in made.node.keywords if k.arg == "num_barriers"), None)
        if keyword is not None:
            edits = Editor(made.path, made.syntax)
            edits.remove_argument(made.node, keyword)
            yield suggested("Allocate a single barrier", edits)
    statement = call.syntax.statement(call.node)
    waits = call.syntax.called(call.node) if isinstance(call.node, ast.Call) else None
    if str(waits).endswith("barrier_wait") and isinstance(statement, ast.Expr) and 1 < count <= _MOST:
        edits = Editor(call.path, call.syntax)
        _indexed(edits, given, 0)
        for index in range(1, count):
            start, end = call.syntax.span(given.node)
            first, last = call.syntax.span(statement)
            text = call.syntax.text
            edits.add_after(statement, f"{text[first:start]}{given.source}.at[{index}]{text[end:last]}")
        yield suggested(f"Wait for each of the {count} barriers", edits)
    for index in range(min(count, 2)):
        edits = Editor(given.path, given.syntax)
        _indexed(edits, given, index)
        yield suggested(f"Use the barrier `.at[{index}]`", edits)


def _indexed_somewhere(given: Spot) -> bool:
    """Whether the kernel takes one of the barriers anywhere."""
    if not isinstance(given.node, ast.Name):
        return True
    return any(isinstance(given.syntax.parent(use), ast.Attribute) for use in given.syntax.uses(given.node))


def _indexed(edits: Editor, given: Spot, index: int) -> None:
    edits.insert(given.syntax.span(given.node)[1], f".at[{index}]")
