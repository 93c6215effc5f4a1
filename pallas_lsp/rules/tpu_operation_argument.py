"""
## What it does
Finds arguments of TPU operations that they do not take: negative shifts and axes out of range of `pltpu.roll`, bit
casts and packing that do not come out even, roundings with the wrong random bits, and the like.

## Why it is wrong
These functions are single instructions of the TPU, and each has the conditions that its message tells.

## Example
```python
pltpu.roll(x, -1, 0)
```

## Use instead
```python
pltpu.roll(x, x.shape[0] - 1, 0)  # the same rotation
```

## Fix safety
A rotation by the size of the axis minus the shift is the same rotation: safe. The others have no fix.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`roll`, `bitcast`, `_pack_elementwise_abstract_eval`, `_stochastic_round_abstract_eval` and others in
`jax/_src/pallas/mosaic/primitives.py`; `AccessAssumption` in `jax/_src/pallas/mosaic/core.py`; `join_bits` and
`split_bits` in `jax/_src/pallas/mosaic/helpers.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "primitives")

_FILE = "jax/_src/pallas/mosaic/primitives.py"
_HELPERS = "jax/_src/pallas/mosaic/helpers.py"
_CORE = "jax/_src/pallas/mosaic/core.py"


def _positive_shift(details: Details) -> Sequence[Fix]:
    """A negative shift as one in the other direction."""
    shift, axis, x = details.argument(1, "shift"), details.argument(2, "axis"), details.argument(0, "x")
    if shift is None or axis is None or x is None:
        return ()
    node = shift.node
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.USub):
        return ()
    base = x.source if isinstance(x.node, ast.Name | ast.Subscript | ast.Call) else f"({x.source})"
    text = f"{base}.shape[{axis.source}] - {shift.syntax.source(node.operand)}"
    return keyword_edits.replace(shift, text, "Rotate the other way round", Safety.SAFE)


def _told(details: Details) -> str:
    said = clean(details.fault.message)
    return f"`{details.source}`: {said[0].lower()}{said[1:]}" if said else f"`{details.source}` is refused."


_ROWS = (
    Row(
        "jax/_src/pallas/mosaic/lowering.py",
        ("_run_scoped_lowering_rule",),
        "Memory that `pl.run_scoped` allocates on a TPU belongs to one core: leave `collective_axes` out.",
        "collective axes",
        at=((None, "collective_axes"),),
        fixes=lambda d: keyword_edits.remove_keyword(d.spot, "collective_axes", "Leave `collective_axes` out"),
    ),
    Row(
        _FILE,
        ("roll",),
        "`shift` cannot be negative: rotate by the size of the axis minus the shift, which is the same.",
        "shift must be non-negative",
        at=((1, "shift"),),
        fixes=_positive_shift,
    ),
    Row(
        _FILE,
        ("roll",),
        "`{source}` rotates along an axis that its operand does not have.",
        "^axis is out of range",
        at=((2, "axis"),),
    ),
    Row(
        _FILE,
        ("roll",),
        "`stride` and `stride_axis` belong together: give both or none.",
        "both specified",
        at=((None, "stride"), (None, "stride_axis")),
    ),
    Row(_FILE, ("roll",), "`stride` cannot be negative.", "stride must be", at=((None, "stride"),)),
    Row(
        _FILE,
        ("roll",),
        "`stride_axis` has to be an axis of the operand, and another one than `axis`.",
        "stride_axis",
        at=((None, "stride_axis"),),
    ),
    Row(
        _FILE,
        ("bitcast", "_bitcast_abstract_eval"),
        "`{source}` does not come out even: axis {dim} of size {size} cannot be packed from {old} to {new}. "
        "The size has to be a multiple of the ratio of the widths.",
        r"dim (?P<dim>-?\d+) of size (?P<size>\d+) .* from (?P<old>\w+) to (?P<new>\S+)",
        at=((1, "ty"),),
    ),
    Row(
        _FILE,
        ("bitcast",),
        "`{source}` changes the width of elements along an axis where that is not possible: `pltpu.bitcast` "
        "packs along the second-last axis (of an array with at least two dimensions).",
        at=((0, "x"),),
    ),
    Row(
        _FILE,
        ("_stochastic_round_abstract_eval",),
        "The random bits have the shape {bits}, but `x` {x}: there is one number for each element.",
        r"got (?P<bits>\([\d, ]*\)) and (?P<x>\([\d, ]*\))",
        at=((1, "random_bits"),),
    ),
    Row(
        _FILE,
        ("_stochastic_round_abstract_eval",),
        "The random bits are {type}, but have to be uint32.",
        r"but got (?P<type>\w+)",
        at=((1, "random_bits"),),
        fixes=lambda d: (
            keyword_edits.cast(d.argument(1, "random_bits"), "jnp.uint32", "Cast the bits to uint32")
            if d.spot is not None and d.spot.syntax.spelled("jax.numpy.uint32", d.spot.node) == "jnp.uint32"
            else ()
        ),
    ),
    *(
        Row(_FILE, (name,), _told)
        for name in (
            *("_pack_elementwise_abstract_eval", "_unpack_elementwise_abstract_eval"),
            *("_get_elementwise_packing_factor", "_trace_value_abstract_eval", "with_memory_space_constraint"),
            *("annotate", "has_memory_space", "_split_key_scalar_abstract_eval", "_join_key_scalar_abstract_eval"),
        )
    ),
    *(Row(_HELPERS, (name,), _told) for name in ("join_bits", "split_bits")),
    Row(
        _CORE,
        ("__post_init__",),
        "These hints contradict each other: a part that is never stored to (`no_store`) has no hazards.",
        "contradiction",
    ),
    Row(
        _CORE,
        ("__post_init__",),
        "`no_hazard_no_deps` says more than `no_hazard`: give only that.",
        "redundancy",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
