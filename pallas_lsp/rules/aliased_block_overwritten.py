"""
## What it does
Finds launches with `input_output_aliases` in which a step reads a block of the input that an earlier step has already
written as a block of the output.

## Why it is wrong
The two share their memory. Where their index maps differ, a step can come to a block that holds a result by then, or,
since a TPU fetches blocks ahead and a GPU runs programs at the same time, either of both. In place is right for blocks
that the same step reads and writes.

## Example
```python
in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
out_specs=pl.BlockSpec((8, 128), lambda i: (i + 1, 0)),
input_output_aliases={0: 0},
```

## Use instead
```python
in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
out_specs=pl.BlockSpec((8, 128), lambda i: (i + 1, 0)),
```

## Fix safety
Leaving the alias out costs memory, and what no step writes is then not defined: a suggestion.

## Applies to
TPU, Triton and kernels that name no backend; jax 0.10, 0.11 and 0.12.

## Source
Index maps evaluated for each step of the grid; jax does not look at it.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.silent import checked, map_element, narrow, silent_finding
from pallas_lsp.rules.shared.wording import shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch", "block specs and index maps")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "aliased-block-overwritten"):
        return None
    facts = fault.facts
    launch = launch_of(fault, context)
    given = launch.argument("input_output_aliases") if launch is not None else None
    where = narrow(given) if given is not None else launch.name if launch is not None else context.locate(fault)
    text = (
        f"Input {facts['index']} and output {facts['output']} share their memory, but step {shape_text(facts['step'])} "
        f"of the grid reads block {shape_text(facts['at'])}, which step {shape_text(facts['written'])} has written by "
        "then: in place, a block has to be read and written by the same step."
    )
    element = map_element(fault, context, facts, 0)
    others = [Related(element.location, "This is the block that a step reads.")] if element is not None else []
    return silent_finding(__name__, fault, context, where, text, others)
