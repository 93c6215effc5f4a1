"""
## What it does
Finds TPU launches whose `dimension_semantics` declare an axis of the grid `parallel` although its steps pass a value
on: an accumulator in scratch memory or in an output that is started in the first step only.

## Why it is wrong
`parallel` allows the compiler to give the steps of an axis to several cores, in any order. Each core has scratch memory
of its own: a sum over such an axis lacks the steps of the other core, and starts with garbage there. On a TPU with one
core for each chip the results happen to be right.

## Example
```python
dimension_semantics=("parallel", "parallel", "parallel")  # the last axis is summed over
```

## Use instead
```python
dimension_semantics=("parallel", "parallel", "arbitrary")
```

## Fix safety
Safe: `arbitrary` only takes a permission away.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
The program of a kernel, worked out for each step of the grid; jax does not compare it with `dimension_semantics`.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.compiler_params import arbitrary, field
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.silent import checked, narrow, related, silent_finding
from pallas_lsp.rules.shared.site_table import Details
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "compiler parameters", "accumulators")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "parallel-axis-carries"):
        return None
    axis = int(fault.facts["axis"])
    what = "Scratch memory" if str(fault.facts["operand"]).startswith("scratch") else "An output block"
    text = (
        f"{what} carries a value from one step of axis {axis} of the grid to the next, but the axis is declared "
        "`parallel`: its steps may run on different cores, which do not see each other's. It has to be `arbitrary`."
    )
    spot = field("dimension_semantics")(Details(fault, context))
    launch = launch_of(fault, context)
    where = launch.name if launch is not None else context.locate(fault)
    fixes: list[Fix | None] = []
    if spot is not None:
        where = narrow(spot)
        value = spot.syntax.value(spot.node)
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(fault.facts["grid"]):
            element = value.elts[axis]
            where = spot.at(element).location
            editor = Editor(spot.path, spot.syntax)
            editor.replace(element, arbitrary(spot.syntax.source(element)))
            fixes.append(safe("Let the steps of this axis run in order", editor))
    others = related(fault, context, "This changes what the step before has left.")
    return silent_finding(__name__, fault, context, where, text, others, fixes)
