"""
## What it does
Finds refs that are added to before they have a value: output blocks and scratch memory that nothing starts, or whose
start value is stored in other steps of the grid than their first.

## Why it is wrong
Outputs and scratch memory hold garbage until the kernel stores something: `o_ref[...] += x` adds to that garbage. The
first value belongs in the first step that has the block, which is where the index of each axis that is summed over is
0.

## Example
```python
def kernel(x_ref, o_ref):                      # out_specs=pl.BlockSpec((1, n), lambda i: (0, 0))
    o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)
```

## Use instead
```python
def kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)
```

## Fix safety
A suggestion: sums start at 0, products at 1, maxima at minus infinity and minima at infinity, in the first step of each
block.

## Applies to
TPU, Triton and kernels that name no backend; jax 0.10, 0.11 and 0.12.

## Source
The programs of kernels, worked out for each step of the grid; jax does not look at it in any version.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import suggested
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, related, related_spots, silent_finding, spot_of
from pallas_lsp.rules.shared.start_statements import condition, start_value, when_of
from pallas_lsp.rules.shared.uncalled import in_body
from pallas_lsp.rules.shared.wording import and_list
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators",)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "accumulator-without-start") or in_body(fault, context):
        return None
    store = spot_of(fault, context)
    target = _target(store) if store is not None else None
    where = target.location if target is not None else context.locate(fault)
    name = f"`{short(context.source(where), 40)}`" if target is not None else "This ref"
    what = "scratch memory" if str(fault.facts.get("operand", "")).startswith("scratch") else "an output"
    axes = fault.facts.get("axes")
    fixes: list[Fix | None] = []
    if fault.facts.get("starts"):
        step = ", ".join(map(str, fault.facts.get("step") or ()))
        text = (
            f"{name} is added to before it has a value: in step ({step}) of the grid nothing has stored its start "
            "value yet."
        )
        if axes:
            text += f" It has to be stored where the index of {_axes(axes)} is 0."
        others = related(fault, context, "The start value is stored here, in other steps.")
        start = next(related_spots(fault, context), None)
        test = when_of(start) if start is not None else None
        if test is not None and axes and test.source != condition(Editor(test.path, test.syntax), test.node, axes):
            others = (*others, Related(where, "This adds to what the ref holds."))
            where = test.location
        fixes.append(_condition(start, axes) if start is not None and axes else None)
    else:
        text = (
            f"{name} is added to, but nothing gives it a first value: the memory of {what} holds garbage until "
            "something is stored in it."
        )
        others = ()
        fixes.append(start_value(fault, context, target, axes) if target is not None else None)
    return silent_finding(__name__, fault, context, where, text, others, fixes, Severity.ERROR)


def _axes(axes: Sequence[int]) -> str:
    return f"{'axis' if len(axes) == 1 else 'axes'} {and_list([str(axis) for axis in axes])}"


def _target(spot: Spot) -> Spot:
    """The target of the store."""
    statement = spot.syntax.statement(spot.node)
    if isinstance(statement, ast.AugAssign):
        return spot.at(statement.target)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return spot.at(statement.targets[0])
    return spot


def _condition(start: Spot, axes: Sequence[int]) -> Fix | None:
    """The condition around the start value made one on the right axes."""
    test = when_of(start)
    if test is None:
        return None
    editor = Editor(test.path, test.syntax)
    text = condition(editor, test.node, axes)
    if text is None:
        return None
    editor.replace(test.node, text)
    return suggested(f"Store it where `{text}`", editor)
