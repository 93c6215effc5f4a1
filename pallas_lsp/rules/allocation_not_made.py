"""
## What it does
Finds descriptions of memory (`plgpu.SMEM(...)`, `plgpu.ACC(...)`, `pltpu.VMEM(...)`, `plgpu.Barrier()`, ...) that are
used as if they were the memory: read, stored to, or given to an operation.

## Why it is wrong
`plgpu.SMEM(shape, dtype)` says what to allocate and allocates nothing. `pl.run_scoped` allocates it and hands its body
a ref; so does the launch for what stands in its scratch types.

## Example
```python
acc = plgpu.ACC((64, 128))
plgpu.wgmma(acc, a_smem, b_smem)
o_ref[...] = acc[...]
```

## Use instead
```python
def scope(acc):
    plgpu.wgmma(acc, a_smem, b_smem)
    o_ref[...] = acc[...]

pl.run_scoped(scope, plgpu.ACC((64, 128)))
```

## Fix safety
Handing `pl.run_scoped` a body that was called by mistake is safe, and so is putting the rest of the block into a scope.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Python's own TypeErrors and AttributeErrors for `MemoryRef` (`jax/_src/pallas/core.py`), `GPUMemoryRef`,
`WGMMAAccumulatorRef` and `Barrier` (`jax/_src/pallas/mosaic_gpu/core.py`), and jax's for arguments of primitives that
are no arrays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.memory_types import memory_type
from pallas_lsp.rules.shared.places import Spot, follow
from pallas_lsp.rules.shared.scopes import rest_in_scope
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.uses import RUN_SCOPED
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch", "refs")
SPECIFICITY = 72

_TYPES = r"(?:GPUMemoryRef|MemoryRef|WGMMAAccumulatorRef|Barrier|ClusterBarrier|SemaphoreType)"
_USED = re.compile(
    rf"'{_TYPES}' object (?:is not subscriptable|does not support item assignment|has no attribute '(?!get_ref_aval))"
    rf"|of type (?:'?<(?:class|enum) ')?[\w.]*{_TYPES}\b[^\n]*(?:was passed to|is not a valid JAX type)"
)


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.stage not in ("trace", "build") or not _USED.search(fault.message):
        return None
    line = line_of(fault, context)
    found = next(_used(line, context), None) if line is not None else None
    if line is None or found is None:
        return None
    used, made = found
    call = _called_body(made)
    if call is not None:
        function = short(made.syntax.source(call.func), 40)
        message = (
            f"`{short(made.syntax.source(call), 50)}` calls `{function}` with what is to be allocated. `pl.run_scoped` "
            "calls it itself, with refs: give it the function and the allocations."
        )
        related = [Related(used.location, "It is used as a ref here.")]
        return finding(__name__, fault, context, made.at(call).location, message, related, [_handed_over(made, call)])
    apart = made.location != used.location
    what = f"`{short(made.source, 50)}`" if apart else "it"
    message = (
        f"`{short(used.source, 40)}` only says what to allocate: {what} is no memory. `pl.run_scoped` allocates it and "
        "gives its body a ref, and so does the launch for its scratch types."
    )
    related = [Related(made.location, "It is made here.")] if apart else []
    return finding(__name__, fault, context, used.location, message, related, [_in_scope(made)] if apart else ())


def _used(line: Line, context: Context) -> Iterator[tuple[Spot, Spot]]:
    """The expressions that stand for a memory type, each with where it is made."""
    for each in ast.walk(line.node):
        holder = line.syntax.parent(each)
        if not isinstance(each, ast.Name | ast.Attribute | ast.Call) or _is_allocated(line.syntax, holder):
            continue
        spot = line.spot(each)
        made, rest = follow(context, line.frames, spot, ())
        value = made.syntax.value(made.node)
        if rest or not isinstance(value, ast.expr) or memory_type(made.syntax, value) is None:
            continue
        yield spot, made.at(value)


def _is_allocated(syntax: Syntax, holder: ast.AST | None) -> bool:
    call = syntax.parent(holder) if isinstance(holder, ast.keyword) else holder
    return isinstance(call, ast.Call) and syntax.dotted(call.func) in RUN_SCOPED


def _called_body(made: Spot) -> ast.Call | None:
    """``scope(SMEM(...))`` inside ``run_scoped(scope(SMEM(...)))``."""
    call = made.syntax.parent(made.node)
    outer = made.syntax.parent(call) if isinstance(call, ast.Call) else None
    if isinstance(call, ast.Call) and isinstance(outer, ast.Call) and made.syntax.dotted(outer.func) in RUN_SCOPED:
        return call if outer.args[:1] == [call] and not call.keywords else None
    return None


def _handed_over(made: Spot, call: ast.Call) -> Fix | None:
    """``run_scoped(scope(SMEM(...)))`` -> ``run_scoped(scope, SMEM(...))``."""
    editor = Editor(made.path, made.syntax)
    editor.replace(call, ", ".join(made.syntax.source(each) for each in (call.func, *call.args)))
    return safe("Give `pl.run_scoped` the function itself", editor)


def _in_scope(made: Spot) -> Fix | None:
    """``tmp = SMEM(...)`` and what follows, as the body of a scope that allocates it."""
    statement = made.syntax.statement(made.node)
    if not isinstance(statement, ast.Assign) or statement.value is not made.node or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return rest_in_scope(made, statement, target.id) if isinstance(target, ast.Name) else None
