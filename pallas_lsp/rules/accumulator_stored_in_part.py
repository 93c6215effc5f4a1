"""
## What it does
Finds stores into a part of a WGMMA accumulator: `acc_ref[:, :64] = value`.

## Why it is wrong
An accumulator lives in the registers of a warpgroup, spread over its threads. It can be read in static parts and
multiplied into in static parts, but a store sets it as a whole.

## Example
```python
def scope(acc_ref):
    acc_ref[:, :64] = jnp.zeros((64, 64), jnp.float32)
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref[...]
```

## Use instead
Nothing, where zeros are stored first: an accumulator of `pl.run_scoped` starts at zero. Else store it as a whole
(`acc_ref[...] = value`), or use two accumulators.

## Fix safety
Leaving out a store of zeros is a suggestion: it is the same only where nothing was accumulated before.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`WGMMAAbstractAccumulatorRef._setitem` in `jax/_src/pallas/mosaic_gpu/core.py`, "Non-trivial indexing".
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.accumulators import is_zero
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_operands import CORE
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators",)
SITES = ((CORE, "WGMMAAbstractAccumulatorRef._setitem"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None or ((site.file, site.function) not in SITES and not _old_python(fault)):
        return None
    place = context.locate(fault)
    source = short(context.source(place), 40)
    text = (
        f"`{source}` is a part of an accumulator, but an accumulator lives in registers and can only be stored to as "
        "a whole, `[...] = value`. It starts at zero in `pl.run_scoped`."
    )
    fixes = []
    syntax, node = context.syntax(place.path), context.node(place)
    statement = syntax.statement(node) if syntax is not None and node is not None else None
    if syntax is not None and isinstance(statement, ast.Assign) and is_zero(syntax, statement.value):
        parent = syntax.parent(statement)
        block = next((b for b in _blocks(parent) if statement in b), None)
        if block is not None:
            edits = Editor(place.path, syntax)
            edits.remove_statement(statement, block)
            fixes.append(suggested("Leave out the store of zeros: the accumulator starts at zero", edits))
    return finding(__name__, fault, context, place, text, (), fixes)


def _old_python(fault: Fault) -> bool:
    """Python 3.10 does not tell the class of a function."""
    return fault.site is not None and fault.site.file == CORE and "Non-trivial indexing" in fault.message


def _blocks(node: ast.AST | None) -> list[list[ast.stmt]]:
    return [b for b in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")) if isinstance(b, list)]
