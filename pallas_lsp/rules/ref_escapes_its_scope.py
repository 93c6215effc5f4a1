"""
## What it does
Finds refs of `pl.run_scoped` that are used after the scope that allocates them, mostly because its body returns the
ref.

## Why it is wrong
What `pl.run_scoped` allocates is freed when its body ends. A ref that the body returns leads to memory that is
somebody else's by then. The body has to return the value, not the ref.

## Example
```python
def load(tile):
    tile[...] = x_ref[...]
    return tile

tile = pl.run_scoped(load, plgpu.SMEM((128, 128), jnp.float32))
o_ref[...] = tile[...]
```

## Use instead
```python
def load(tile):
    tile[...] = x_ref[...]
    return tile[...]

o_ref[...] = pl.run_scoped(load, plgpu.SMEM((128, 128), jnp.float32))
```

## Fix safety
Returning the value is a suggestion: the value is read when the scope ends, and what is written to the ref later is
lost (it would have been written to freed memory).

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`make_jaxpr_effects` in `jax/_src/interpreters/partial_eval.py`, "does not have a corresponding jaxpr input"; from jax
0.11 on it fails while it writes that message, in `_shift_arg_names` (`jax/_src/core.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import born
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.uses import Use, parameter, scoped_use
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SITES = (
    ("jax/_src/interpreters/partial_eval.py", "make_jaxpr_effects"),
    ("jax/_src/core.py", "_shift_arg_names"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    unknown = fault.facts.get("unknown_ref")
    if not isinstance(unknown, Mapping) or not unknown.get("is_ref"):
        return None
    used = born(context, unknown.get("frames"))
    made = unknown.get("allocation")
    spot = born(context, made.get("frames")) if isinstance(made, Mapping) else None
    use = _scope(spot) if spot is not None else None
    returned = _returned(use, spot) if use is not None and spot is not None else None
    place = returned or used
    if place is None:
        return None
    what = f"`{short(spot.source, 50)}`" if spot is not None else "a scope that ended"
    text = (
        f"`{short(place.source, 40)}` is the ref of {what}, which is freed when the body of its `pl.run_scoped` ends: "
        "return its value, `[...]`, not the ref."
    )
    related = []
    if used is not None and returned is not None:
        related.append(Related(used.location, "The ref is used here, after its scope."))
    fixes = [_fix(use, returned, used)] if use is not None and returned is not None else []
    return finding(__name__, fault, context, place.location, text, related, fixes)


def _scope(spot: Spot) -> Use | None:
    """The use of run_scoped that an allocation stands in."""
    for parent in spot.syntax.ancestors(spot.node):
        if isinstance(parent, ast.stmt):
            break
        if isinstance(parent, ast.Call):
            use = scoped_use(spot.at(parent))
            if use is not None:
                return use
    return None


def _returned(use: Use, spot: Spot) -> Spot | None:
    """Where the body of a scope returns the ref of an allocation."""
    function = use.function
    if function is None or not isinstance(use.call, ast.Call):
        return None
    index = next((i for i, a in enumerate(use.call.args) if spot.node in ast.walk(a)), None)
    name = next((k.arg for k in use.call.keywords if spot.node in ast.walk(k.value)), None)
    if index is None and name is None:
        return None
    found = parameter(use, (index or 1) - 1, name)
    if found is None:
        return None
    if isinstance(function, ast.Lambda):
        returns: list[Any] = [function.body]
    else:
        returns = [r.value for r in use.syntax.returns(function) if r.value is not None]
    for value in returns:
        for node in [value, *(value.elts if isinstance(value, ast.Tuple | ast.List) else [])]:
            if isinstance(node, ast.Name) and node.id == found.arg:
                return spot.at(node)
    return None


def _fix(use: Use, returned: Spot, used: Spot | None) -> Fix | None:
    """The value returned, and read without an index where the ref was read."""
    edits = Editor(returned.path, returned.syntax)
    edits.insert(returned.syntax.span(returned.node)[1], "[...]")
    reads = _reads(use, used)
    for read in reads:
        edits.replace(read, returned.syntax.source(read.value))
    return suggested("Return the value of the ref", edits)


def _reads(use: Use, used: Spot | None) -> list[ast.Subscript]:
    """The places where the returned ref is read as a whole: those of the name that it was given, in the same file."""
    if used is None or used.path != use.spot.path:
        return []
    node = used.node
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and _whole(node.slice):
        syntax = used.syntax
        found = []
        for name in syntax.uses(node.value):
            parent = syntax.parent(name)
            if not isinstance(parent, ast.Subscript) or parent.value is not name:
                continue
            if _whole(parent.slice) and isinstance(parent.ctx, ast.Load):
                found.append(parent)
        return found
    return [node] if isinstance(node, ast.Subscript) and _whole(node.slice) else []


def _whole(index: ast.expr) -> bool:
    if isinstance(index, ast.Constant):
        return index.value is ...
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None
