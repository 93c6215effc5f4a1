"""
## What it does
Finds `ref.reshape(...)` and `ref.bitcast(...)` with a shape or a type that the ref's elements do not fill.

## Why it is wrong
A view of a ref is the same memory seen in another way, so it has exactly as many bytes. One dimension of a new shape
may be `-1`: it is computed from the others, which then have to divide the number of elements. A bitcast to a type of
another width changes the second to last dimension, so there has to be one, and its bits have to divide evenly.

## Example
```python
x_ref[...]                      # (128, 256)
x_ref.reshape(64, 256)[...]     # 16384 elements instead of 32768
```

## Use instead
```python
x_ref.reshape(128, 256)[...]
x_ref.reshape(64, 512)[...]
x_ref.reshape(64, -1)[...]
```

## Fix safety
A dimension that fills the rest of the ref is suggested, for each dimension that can be chosen so.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_canonicalize_reshape`, `ReshapeTransform._validate_shape`, `TransformedRef.reshape` and `TransformedRef.bitcast` in
`jax/_src/state/types.py`; `bitcast` in `jax/_src/state/utils.py`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
_TYPES = "jax/_src/state/types.py"
_RESHAPES = ("_canonicalize_reshape", "ReshapeTransform._validate_shape")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def _view(details: Details) -> ast.Call | None:
    """The call of ``reshape`` or ``bitcast``, where the expression at fault is it or lies around it."""
    node: ast.expr | None = details.spot.node if details.spot is not None else None
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("reshape", "bitcast"):
                return node
            node = node.func
        else:
            node = node.value
    return None


def _dimensions(details: Details) -> list[ast.expr]:
    """The written dimensions of the new shape."""
    call = _view(details)
    given = list(call.args) if call is not None else []
    if len(given) == 1 and isinstance(given[0], ast.Tuple):
        given = list(given[0].elts)
    return [] if any(isinstance(each, ast.Starred) for each in given) else given


def _spot(details: Details) -> Spot | None:
    """The new shape or type as it is written."""
    call = _view(details)
    if call is None or details.spot is None:
        return None
    return details.spot.at(call.args[0]) if len(call.args) == 1 else details.spot.at(call)


def _counted(details: Details) -> str:
    have, want = _numbers(details["have"]), _numbers(details["want"])
    more = "more" if math.prod(want) > math.prod(have) else "fewer"
    return (
        f"A view has as many elements as its ref: {_shape(have)} has {math.prod(have)}, {_shape(want)} has "
        f"{math.prod(want)}, which is {more}."
    )


def _undivided(details: Details) -> str:
    want = [size for size in _numbers(details["want"]) if size != -1]
    total, known = int(details["total"]), math.prod(want)
    return (
        f"The `-1` cannot be computed: the ref has {total} elements, which the other dimensions "
        f"({' * '.join(map(str, want))}{f' = {known}' if len(want) > 1 else ''}) do not divide; {total % known} would "
        "be left over."
    )


def _shape(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _other_dimension(details: Details) -> list[Fix]:
    """Each dimension replaced by what fills the ref."""
    want = _numbers(details["want"])
    total = math.prod(_numbers(details["have"])) if details["have"] else int(details["total"])
    nodes = _dimensions(details)
    if len(nodes) != len(want) or details.spot is None:
        return []
    found: list[Fix] = []
    for index, node in enumerate(nodes):
        rest = math.prod(size for other, size in enumerate(want) if other != index and size != -1)
        if want[index] == -1 or not rest or total % rest or (-1 in want and rest == 1):
            continue
        size = str(total // rest)
        others = [str(n) if i != index else size for i, n in enumerate(want)]
        title = f"Reshape to ({', '.join(others)})"
        found += keyword_edits.replace(details.spot.at(node), size, title)
    return found


def _one_inferred(details: Details) -> list[Fix]:
    """All but the last ``-1`` as 1."""
    nodes = [n for n in _dimensions(details) if ast.unparse(n) == "-1"]
    if len(nodes) != 2 or details.spot is None:
        return []
    return list(keyword_edits.replace(details.spot.at(nodes[0]), "1", "Keep one `-1` and make the other dimension 1"))


_ROWS = (
    Row(
        _TYPES,
        _RESHAPES,
        _counted,
        r"cannot reshape (?:ref of )?shape (?P<have>\(.*?\)) into shape (?P<want>\(.*?\))",
        at=_spot,
        fixes=_other_dimension,
    ),
    Row(
        _TYPES,
        _RESHAPES,
        _undivided,
        r"Specified dims (?P<want>\(.*?\)) do not evenly divide the size of the ref \((?P<total>\d+)\)",
        at=_spot,
        fixes=_other_dimension,
    ),
    Row(
        _TYPES,
        _RESHAPES,
        "Only one dimension can be `-1`, computed from the others: say the sizes of the rest.",
        "At most one dimension can be -1",
        at=_spot,
        fixes=_one_inferred,
    ),
    Row(
        _TYPES,
        ("TransformedRef.reshape", "TransformedRef.bitcast"),
        "`{source}` is a view of a slice whose size is known at run time only: slice with a size that is a Python "
        "number (`pl.ds(start, 128)`; the start may be traced), or make the view first and slice it then.",
        "dynamic size",
    ),
    Row(
        "jax/_src/state/utils.py",
        ("bitcast",),
        "A bitcast to a type of another width changes the second to last dimension, which a ref of one dimension does "
        "not have: reshape it to (n, 1) or (1, n) first, or cast to a type of the same width.",
        "Bitcast 1D ref",
        at=_spot,
    ),
    Row(
        "jax/_src/state/utils.py",
        ("bitcast",),
        "A bitcast changes the second to last dimension by the ratio of the widths, and that dimension of `{source}` "
        "does not divide: a narrower type multiplies it, a wider one needs a multiple of the ratio.",
        "second-minor",
        at=_spot,
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
