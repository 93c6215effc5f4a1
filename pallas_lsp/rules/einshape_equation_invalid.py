"""
## What it does
Finds calls of `pltpu.einshape` whose equation does not fit the array or itself: another number of dimensions, a name
that is nowhere on the left, parentheses that do not match, a split whose sizes are missing or do not divide.

## Why it is wrong
`einshape("a(bc)->bac", x, b=4)` names each dimension of `x` on the left, with parentheses around the parts that one
dimension is split into, and puts the same names in their new order on the right. Of the parts of a split all sizes but
one are given as keywords, and have to divide the dimension.

## Example
```python
pltpu.einshape("a(bc)->bac", x)          # how large is b?
pltpu.einshape("a(bc)->bac", x, b=3)     # 128 is no multiple of 3
```

## Use instead
```python
pltpu.einshape("a(bc)->bac", x, b=4)
```

## Fix safety
Sizes are suggested: the nearest smaller one that divides the dimension.

## Applies to
TPU, and everywhere outside of kernels; jax 0.10, 0.11 and 0.12.

## Source
`_parse_side`, `_parse_equation`, `_get_einshape_dims` and `get_einshape_transforms` in `jax/_src/pallas/einshape.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.rules.shared.wording import and_list

SINCE = "0.1.0"
CONSTRUCTS = ("primitives", "TPU")
_FILE = "jax/_src/pallas/einshape.py"
_SIZES = ("_get_einshape_dims", "get_einshape_transforms")
_PARSE = ("_parse_side", "_parse_equation")
_EQUATION = ((0, "equation"),)


def _names(text: str) -> list[str]:
    return re.findall(r"'(\w+)'", text)


def _ambiguous(details: Details) -> str:
    unknown = _names(details["unknown"])
    wanted = "the size of one of them" if len(unknown) == 2 else f"the sizes of {len(unknown) - 1} of them"
    return (
        f"The dimension of size {details['size']} is split into {and_list(_names(details['names']))}, but nothing says "
        f"how large {and_list(unknown)} are: give {wanted}, as in `{unknown[0] if unknown else 'b'}=...`."
    )


def _groups(details: Details) -> str:
    left = details["left"].count("[") - 1 if details["left"] else 0
    names = f"{details['groups']} dimensions" if left else "other dimensions"
    return (
        f"The left side of the equation names {names}, but the array has the shape {details['shape']}: each of its "
        "dimensions is one letter, or one pair of parentheses around the parts that it is split into."
    )


def _divisor(details: Details) -> Sequence[Fix]:
    """The only size that is given, made to divide the dimension."""
    call = details.call
    given = [k for k in call.keywords if k.arg and len(k.arg) == 1] if call is not None else []
    if len(given) != 1 or details.spot is None or not isinstance(given[0].value, ast.Constant):
        return ()
    size, known = int(details["size"]), int(details["known"])
    if given[0].value.value != known:
        return ()
    better = next((n for n in range(known, 0, -1) if size % n == 0), 1)
    return keyword_edits.replace(details.spot.at(given[0].value), str(better), f"Use {given[0].arg}={better}")


_ROWS = (
    Row(
        _FILE,
        _PARSE,
        "The parentheses of this equation do not match: each `(` opens a group that its own `)` closes.",
        "Unmatched parenthesis",
        at=_EQUATION,
    ),
    Row(
        _FILE,
        _PARSE,
        "An equation has one `->`, between the names of the array's dimensions and their new order.",
        "exactly one",
        at=_EQUATION,
    ),
    Row(
        _FILE,
        _SIZES,
        _ambiguous,
        r"Ambiguous split for (?P<names>\[.*?\]) with size (?P<size>\d+)\. Unknowns: (?P<unknown>\[.*?\])",
        at=_EQUATION,
    ),
    Row(
        _FILE,
        _SIZES,
        "A dimension of size {size} cannot be split into parts of which the given sizes make {known}: {size} is no "
        "multiple of {known}.",
        r"Cannot split size (?P<size>\d+) with known sizes (?P<known>\d+)",
        fixes=_divisor,
    ),
    Row(
        _FILE,
        _SIZES,
        "`{name}` stands for {one} in one place and for {two} in another: a name is one size everywhere.",
        r"Inconsistent size for (?P<name>\w+): (?P<one>\d+) vs (?P<two>\d+)",
        at=_EQUATION,
    ),
    Row(
        _FILE,
        _SIZES,
        "The given sizes of the parts {group} make {got}, but the dimension that is split into them has {wanted}.",
        r"Size mismatch for group (?P<group>.*?): expected (?P<wanted>\d+), got (?P<got>\d+)",
        at=_EQUATION,
    ),
    Row(
        _FILE,
        _SIZES,
        _groups,
        r"LHS has (?P<groups>\d+) groups but input has (?P<rank>\d+) dims\. LHS: (?P<left>.*), Input shape: "
        r"(?P<shape>\(.*?\))",
        at=_EQUATION,
    ),
    Row(
        _FILE,
        _SIZES,
        "`{name}` stands on the right of the equation only: the right side is an order of the names on the left.",
        r"Unknown dimension (?P<name>\w+) in RHS",
        at=_EQUATION,
    ),
    Row(
        _FILE,
        _SIZES,
        "The right side of the equation leaves out or repeats a name: `einshape` reorders, splits and merges "
        "dimensions, it neither sums nor broadcasts. Use `jnp.sum` or `jax.lax.broadcast_in_dim` for that.",
        "no broadcast",
        at=_EQUATION,
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
