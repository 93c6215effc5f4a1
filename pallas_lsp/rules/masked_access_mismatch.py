"""
## What it does
Finds calls of the load and store functions of the backends (`plt.store`, `pltpu.store`, `plt.load`, ...) and of atomic
operations whose value does not have the type or shape of the part of the ref, or whose mask does not fit it.

## Why it is wrong
A store copies elements: it converts and broadcasts nothing. The value has to have the ref's type and the shape of the
part that is stored to; the mask has to be broadcastable to it.

## Example
```python
plt.store(o_ref, x.astype(jnp.bfloat16), mask=mask)  # o_ref is float32
```

## Use instead
```python
plt.store(o_ref, x.astype(o_ref.dtype), mask=mask)
```

## Fix safety
A cast of the value to the ref's type is what a store of that ref needs, and safe.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_load_abstract_eval` and `_swap_abstract_eval` in `jax/_src/pallas/primitives.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.rules.shared.wording import shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)

_FILE = "jax/_src/pallas/primitives.py"
_ATOMIC = "atomic_"
_INDEX = re.compile(r"NDIndexer\(indices=\((.*?)\), shape=")
_SCALAR = re.compile(r"ShapedArray\(\w+\[\]")
_SLICE = re.compile(r"Slice\([^)]*?size=(\d+)")


def _value(details: Details) -> Spot | None:
    """The value that is stored: the second argument, the third of an atomic operation."""
    call = details.call
    if call is None:
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    position = 2 if name.startswith(_ATOMIC) else 1
    return details.argument(position, "val")


def _target(details: Details) -> str:
    spot = details.argument(0, "x_ref_or_view") or details.argument(0, "ref")
    return f"`{spot.source}`" if spot is not None else "the ref"


def _dtype(details: Details) -> str:
    value = _value(details)
    what = f"`{value.source}`" if value is not None else "The value"
    return f"{what} is {details['given']}, but {_target(details)} holds {details['wanted']}: a store converts nothing."


def _shape(details: Details) -> str:
    value = _value(details)
    what = f"`{value.source}`" if value is not None else "The value"
    part = ((details.fault.facts.get("mismatch") or {}).get("ref") or {}).get("shape")
    wanted = shape_text(part) if part is not None else details["part"] or _indexed(details.fault.message)
    takes = f"the shape {wanted}" if wanted else "another shape"
    return (
        f"{what} has the shape {details['given']}, but {_target(details)} takes {takes}: a store does not broadcast "
        "or reshape."
    )


def _indexed(message: str) -> str:
    """The shape of the part of a ref that one index with scalars and slices takes, as jax describes the index."""
    found = _INDEX.findall(message)
    if len(found) != 1 or "ShapedArray" in _SCALAR.sub("", found[0]):
        return ""
    return shape_text([int(size) for size in _SLICE.findall(found[0])])


def _cast(details: Details) -> Sequence[Fix]:
    value, target = _value(details), details.argument(0, "x_ref_or_view") or details.argument(0, "ref")
    if value is None or target is None:
        return ()
    node: ast.expr = target.node
    while isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node, ast.Name):
        node = node.value
    if not isinstance(node, ast.Name):
        return ()
    return keyword_edits.cast(value, f"{node.id}.dtype", f"Cast the value to {details['wanted']}", Safety.SAFE)


_ROWS = (
    Row(
        _FILE,
        ("_swap_abstract_eval",),
        _dtype,
        r"Invalid dtype.*Ref dtype: (?P<wanted>\w+)\..*Value dtype: (?P<given>\w+)",
        at=_value,
        fixes=_cast,
    ),
    Row(
        _FILE,
        ("_swap_abstract_eval",),
        _shape,
        r"Invalid shape.*?\. (?:Expected shape: (?P<part>\([\d, ]*\))\. )?Value shape: (?P<given>\([\d, ]*\))",
        at=_value,
    ),
    Row(
        _FILE,
        ("_load_abstract_eval",),
        "The mask has the shape {mask}, which cannot be broadcast to that of the load, {part}: give it the missing "
        "axes, as in `mask[:, None]`.",
        r"Cannot broadcast mask shape (?P<mask>\([\d, ]*\)) to load shape (?P<part>\([\d, ]*\))",
        at=((None, "mask"),),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
