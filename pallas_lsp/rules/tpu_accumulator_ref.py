"""
## What it does
Finds accumulators of the TPU's matrix units (`pltpu.ACC(mxu_id)(shape, dtype)`) that the hardware does not have: of
another shape or type, on a unit that is not there, too large, allocated as scratch, or read and written like other
refs; and matrix products with an accumulator that do not fit it.

## Why it is wrong
A matrix unit sums into registers of its own: rows of as many float32 or int32 numbers as it has columns (256), in
groups of 8 rows. They are filled by `pltpu.matmul_acc_lhs` and emptied by `pltpu.matmul_pop` only. Older TPUs have
none.

## Example
```python
pl.run_scoped(body, pltpu.ACC(0)((64, 128), jnp.bfloat16))
```

## Use instead
```python
pl.run_scoped(body, pltpu.ACC(0)((64, 256), jnp.float32))
```

and read the sum with `pltpu.matmul_pop(acc)`.

## Fix safety
Another type, number of columns or matrix unit is suggested. Reading with `pltpu.matmul_pop` is suggested, for it sets
the accumulator to zero.

## Applies to
TPU kernels for chips with such accumulators; jax 0.11 and 0.12.

## Source
`check_accumulator_ref` in `jax/_src/pallas/mosaic/core.py`; `_matmul_acc_lhs_abstract_eval`,
`_matmul_pop_abstract_eval` and others in `jax/_src/pallas/mosaic/primitives.py`; `alloc_accumulator`,
`_load_lowering_rule`, `_swap_lowering_rule` in `jax/_src/pallas/mosaic/lowering.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.launches import born
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "accumulators")

_CORE = "jax/_src/pallas/mosaic/core.py"
_PRIMITIVES = "jax/_src/pallas/mosaic/primitives.py"
_LOWERING = "jax/_src/pallas/mosaic/lowering.py"
_CHECK = ("check_accumulator_ref",)
_SHAPE, _DTYPE = ((0, "shape"),), ((1, "dtype"),)


def _unit(details: Details) -> Spot | None:
    """The number in ``pltpu.ACC(5)(shape, dtype)``."""
    call = details.call
    made = details.spot.syntax.value(call.func) if call is not None and details.spot is not None else None
    if details.spot is None or not isinstance(made, ast.Call):
        return None
    given = details.spot.syntax.argument(made, 0, "mxu_id")
    return details.spot.at(given) if given is not None else details.spot.at(made)


def _dimension(details: Details, index: int) -> Spot | None:
    """One dimension of the shape, where it is written as a tuple."""
    shape = details.argument(0, "shape")
    value = shape.syntax.value(shape.node) if shape is not None else None
    if shape is None or not isinstance(value, ast.Tuple | ast.List) or not value.elts:
        return shape
    return shape.at(value.elts[index])


def _set(index: int, group: str) -> Callable[[Details], Sequence[Fix]]:
    def fixes(details: Details) -> Sequence[Fix]:
        spot = _dimension(details, index)
        node = spot.syntax.value(spot.node) if spot is not None else None
        if spot is None or not isinstance(node, ast.Constant) or not isinstance(node.value, int):
            return ()
        unit = int(details[group])
        new = unit if group == "columns" else (node.value + unit - 1) // unit * unit
        return keyword_edits.replace(spot.at(node), str(new), f"Use {new} {'columns' if index == -1 else 'rows'}")

    return fixes


def _float32(details: Details) -> Sequence[Fix]:
    spot = details.argument(1, "dtype")
    written = spot.syntax.spelled("jax.numpy.float32", spot.node) if spot is not None else None
    return keyword_edits.replace(spot, written, "Accumulate in float32") if written is not None else ()


def _pop(details: Details) -> Sequence[Fix]:
    """``acc[...]`` -> ``pltpu.matmul_pop(acc)``."""
    spot = details.spot
    if spot is None or not isinstance(spot.node, ast.Subscript):
        return ()
    editor = Editor(spot.path, spot.syntax)
    pop = editor.spell("jax.experimental.pallas.tpu.matmul_pop", spot.node, ("jax.experimental.pallas.tpu", "pltpu"))
    whole = isinstance(spot.node.slice, ast.Constant) and spot.node.slice.value is Ellipsis
    if pop is None or not whole:
        return ()
    editor.replace(spot.node, f"{pop}({spot.syntax.source(spot.node.value)})")
    return (Fix("Read it with pltpu.matmul_pop (which sets it to zero)", editor.edits(), Safety.SUGGESTED),)


def _scratch(details: Details) -> Spot | None:
    for spec in (details.fault.facts.get("given") or {}).get("scratch") or ():
        if "ACC" in str(spec.get("memory_space", "")).upper():
            return born(details.context, spec.get("frames"))
    return None


_ROWS = (
    Row(
        _CORE,
        _CHECK,
        "An accumulator needs at least two dimensions (rows, columns), but has the shape {shape}.",
        r"at least 2D, got shape (?P<shape>\([\d, ]*\))",
        at=_SHAPE,
    ),
    Row(
        _CORE,
        _CHECK,
        "A matrix unit sums in float32 or int32, so that an accumulator cannot be {type}.",
        r"must be float32 or int32, got (?:<class ')?(?:[\w.]*\.)?(?P<type>\w+)",
        at=_DTYPE,
        fixes=_float32,
    ),
    Row(
        _CORE,
        _CHECK,
        "TPU {chip} has no accumulators that a kernel could name (they came with the seventh generation): use "
        "`jnp.dot`.",
        r"not available on TPU (?P<chip>\w+)",
    ),
    Row(
        _CORE,
        _CHECK,
        "There is no matrix unit {id}: this TPU has {units} of them, numbered from 0.",
        r"mxu_id must be in \[0, (?P<units>\d+)\), got mxu_id=(?P<id>-?\d+)",
        at=_unit,
        fixes=lambda d: keyword_edits.replace(_unit(d), "0", "Use the first matrix unit"),
    ),
    Row(
        _CORE,
        _CHECK,
        "The last dimension of an accumulator is the number of columns of the matrix unit, {columns}, but is {given}.",
        r"minor dimension size of an accumulator ref must be (?P<columns>\d+) but got (?P<given>\d+)",
        at=lambda d: _dimension(d, -1),
        fixes=_set(-1, "columns"),
    ),
    Row(
        _CORE,
        _CHECK,
        "An accumulator has rows in groups of {rows}, but {given} rows are asked for.",
        r"multiple of (?P<rows>\d+), but got (?P<given>\d+)",
        at=lambda d: _dimension(d, 0),
        fixes=_set(0, "rows"),
    ),
    Row(
        _LOWERING,
        ("alloc_accumulator",),
        "The accumulators of a matrix unit hold {entries} entries, too few for this one together with the others: make "
        "it smaller, or put it on another unit.",
        r"but only (?P<entries>-?\d+)",
    ),
    Row(
        _LOWERING,
        ("alloc_accumulator",),
        "TPU {chip} has no accumulators that a kernel could name: use `jnp.dot`.",
        r"not available on TPU (?P<chip>\w+)",
    ),
    Row(
        _LOWERING,
        ("_memory_space_to_mosaic_attribute",),
        "An accumulator cannot be scratch of the launch: allocate it in the kernel with "
        "`pl.run_scoped(body, pltpu.ACC(0)(shape, dtype))`.",
        "AccMemorySpace",
        at=_scratch,
    ),
    Row(
        _LOWERING,
        ("_load_lowering_rule",),
        "{ref} is an accumulator, which only `pltpu.matmul_pop` can read (it sets it to zero).",
        "accumulator",
        fixes=_pop,
    ),
    Row(
        _LOWERING,
        ("_swap_lowering_rule",),
        "{ref} is an accumulator, which cannot be stored to: it starts at zero, `pltpu.matmul_acc_lhs` adds to it and "
        "`pltpu.matmul_pop` empties it.",
        "accumulator",
    ),
    Row(
        _LOWERING,
        ("_matmul_acc_lhs_lowering_rule", "_matmul_pop_lowering_rule"),
        "`{source}` works on a part of an accumulator, which is not possible here: use the whole accumulator.",
        "Transforms",
        at=((0, "acc"),),
    ),
    Row(
        _PRIMITIVES,
        ("_matmul_acc_lhs_abstract_eval", "_matmul_pop_abstract_eval"),
        "`{source}` needs an accumulator (`pltpu.ACC(0)(shape, dtype)`), not a ref in other memory.",
        "Expected an accumulator",
        at=((0, "acc"),),
    ),
    Row(
        _PRIMITIVES,
        ("_matmul_acc_lhs_abstract_eval",),
        "The accumulator has the shape {acc}, but the left factor {lhs}: they need the same number of rows.",
        r"accumulator (?P<acc>\([\d, ]*\)) does not match the shape of the lhs (?P<lhs>\([\d, ]*\))",
        at=((1, "lhs"),),
    ),
    Row(
        _PRIMITIVES,
        ("_matmul_acc_lhs_abstract_eval",),
        "The accumulator has the shape {acc}, but has to be a matrix here: take one with `acc.at[i]`.",
        r"accumulator (?P<acc>\([\d, ]*\)) is not 2-dimensional",
        at=((0, "acc"),),
    ),
    Row(
        _PRIMITIVES,
        ("_matmul_pop_fifo_abstract_eval", "_matmul_pop_abstract_eval"),
        "The sum of a matrix unit is float32 or int32, not {type}: cast it afterwards.",
        r"are supported, got (?:<class ')?(?:[\w.]*\.)?(?P<type>\w+)",
        at=((None, "dtype"), (2, "dtype")),
    ),
    Row(
        _PRIMITIVES,
        ("matmul_acc_lhs", "matmul_lhs_fifo"),
        "`load_staged_rhs` is the number of a staging register (0 or 1) or None, not a truth value: True would mean "
        "register 1.",
        "load_staged_rhs",
        at=((None, "load_staged_rhs"), (2, "load_staged_rhs")),
        fixes=lambda d: keyword_edits.set_keyword(d.spot, "load_staged_rhs", "0", "Load from register 0"),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
