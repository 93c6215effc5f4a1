"""
## What it does
Finds arguments that small functions of Pallas do not take: `pl.select_ref` with fewer than two refs,
`pl.empty_ref_like` of something that is no type of an array, `pl.next_power_of_2` of a negative number, `pl.dot` of
something else than two matrices, a second `memory_space_cast` of a ref, `pltpu.infer_tiling` of a scalar.

## Why it is wrong
`pl.select_ref` chooses one of several refs by an index; `pl.empty_ref_like` allocates a ref for a type
(`jax.ShapeDtypeStruct`, `pltpu.VMEM(...)`); `pl.dot` is a product of two matrices whose precision is told in one way.

## Example
```python
ref = pl.select_ref(i, x_ref)
pl.dot(x_ref[0], w_ref[...])
```

## Use instead
```python
ref = pl.select_ref(i, x_ref, y_ref)
pl.dot(x_ref[0:1], w_ref[...])
```

## Fix safety
`allow_tf32` next to `precision` is taken out (suggested). Other findings have no fix.

## Applies to
All backends; jax 0.10, 0.11 and 0.12 (`pl.dot` in 0.10).

## Source
`select_ref` and `empty_ref_like` in `jax/_src/pallas/helpers.py`, `dot` in `jax/_src/pallas/primitives.py`,
`next_power_of_2` in `jax/_src/pallas/utils.py`, `TransformedRef.memory_space_cast` in `jax/_src/state/types.py`,
`infer_tiling` in `jax/_src/pallas/mosaic/tpu_info.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches",)
_HELPERS = "jax/_src/pallas/helpers.py"
_PRIMITIVES = "jax/_src/pallas/primitives.py"


def _not_matrices(details: Details) -> str:
    return f"`{details.source}` multiplies two matrices, but one of its operands has another number of dimensions."


_ROWS = (
    Row(
        _HELPERS,
        ("select_ref",),
        "`{source}` chooses among refs, so it needs at least two: `pl.select_ref(index, a_ref, b_ref)`.",
        "At least two refs",
    ),
    Row(
        _HELPERS,
        ("empty_ref_like",),
        "`{source}` makes a ref for the type of an array, such as `jax.ShapeDtypeStruct(shape, dtype)` or "
        "`pltpu.VMEM(shape, dtype)`, but this is `{given}`.",
        r"does not support (?:<class ')?(?P<given>[\w.]+)",
        at=((0, "x"),),
    ),
    Row(
        "jax/_src/pallas/utils.py",
        ("next_power_of_2",),
        "`{source}` asks for a power of two above a negative number: there is none below 1.",
        "non-negative",
        at=((0, "x"),),
    ),
    Row(_PRIMITIVES, ("dot",), _not_matrices, "2D arrays", at=()),
    Row(
        _PRIMITIVES,
        ("dot",),
        "`allow_tf32` is a precision of its own: give either it or `precision`.",
        "allow_tf32 and precision",
        at=((None, "allow_tf32"),),
        fixes=lambda d: keyword_edits.remove_keyword(d.spot, "allow_tf32", "Keep the precision"),
    ),
    Row(
        "jax/_src/state/types.py",
        ("TransformedRef.memory_space_cast",),
        "`{source}` is cast to a memory space for the second time: cast it once, to the last one.",
        "Multiple memory_space_casts",
    ),
    Row(
        "jax/_src/pallas/mosaic/tpu_info.py",
        ("infer_tiling",),
        "`{source}` asks for the tiles of an array of shape {shape}, but tiles are for arrays of at least {count} "
        "dimensions.",
        r"at least (?P<count>\d+) dimensions: shape=(?P<shape>\(.*\))",
    ),
    Row(
        _PRIMITIVES,
        ("_jaxpr_call",),
        "`{source}` is given a view of a ref that is not indexed: index it first, `ref.at[...]`.",
        "must have been indexed",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
