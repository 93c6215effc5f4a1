"""
## What it does
Finds operations in a TPU kernel on a type that they are not there for: 64-bit integers and floats, sums of unsigned or
small integers, casts that do not exist, indices of the maximum of integers.

## Why it is wrong
The registers of a TPU hold elements of up to 32 bits, and not every operation is there for each type. With
`jax_enable_x64` many functions choose 64 bits on their own: `jnp.arange`, `jnp.sum` of integers, `jnp.argmax`.

## Example
```python
o_ref[...] = x_ref[...].astype(jnp.int64)
n = jnp.sum(mask_ref[...])  # int64 with jax_enable_x64
```

## Use instead
```python
o_ref[...] = x_ref[...].astype(jnp.int32)
n = jnp.sum(mask_ref[...], dtype=jnp.int32)
```

For small integers, cast to int32 or float32 first and back afterwards.

## Fix safety
All fixes are suggested: they change a type.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`_convert_element_type_lowering_rule`, `_convert_helper`, `reduce_lowering_rule`, `_reduce_index_helper` and the
lowering rules of arithmetic in `jax/_src/pallas/mosaic/lowering.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, matmuls, narrow_types, site_table
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "element types")

_FILE = "jax/_src/pallas/mosaic/lowering.py"


def _wide(details: Details) -> str:
    written = narrow_types.place(details)
    why = "" if written is not None else " jax chose it because `jax_enable_x64` is on; ask for 32 bits with `dtype=`."
    return f"`{details.source}` makes {details.output()}, but a TPU kernel has no 64-bit types: use 32 bits.{why}"


def _operand(details: Details) -> Spot | None:
    """The array that a reduction works on: its first argument, or what its method is of."""
    call, spot = details.call, details.spot
    if call is None or spot is None:
        return None
    module = (spot.syntax.dotted(call.func) or "").startswith("jax")
    if not module and isinstance(call.func, ast.Attribute):
        return spot.at(call.func.value)
    return details.argument(0, "a")


def _through_32_bits(details: Details) -> Sequence[Fix]:
    given = matmuls.dtype_of(details.inputs(0))
    dtype = "int32" if "int" in given or given == "bool" else "float32"
    written = _spelled(details, dtype)
    if written is None:
        return ()
    return keyword_edits.cast(_operand(details), written, f"Reduce in {dtype}")


def _spelled(details: Details, dtype: str) -> str | None:
    spot = details.spot
    return spot.syntax.spelled(f"jax.numpy.{dtype}", spot.node) if spot is not None else None


def _reduced(details: Details) -> str:
    given = matmuls.dtype_of(details.inputs(0))
    return (
        f"`{details.source}` reduces {details.inputs(0)}, but a TPU kernel reduces float32, bfloat16 and int32 only: "
        f"cast to {'int32' if 'int' in given or given == 'bool' else 'float32'} first."
    )


def _index(details: Details) -> str:
    return (
        f"`{details.source}` finds an index in {details.inputs(0)} ({details.output()}), but a TPU kernel can do that "
        "for float32 (and bfloat16) with a 32-bit index only."
    )


def _index_fixes(details: Details) -> Sequence[Fix]:
    if "i64" in details.output():
        return narrow_types.fixes(details)
    written = _spelled(details, "float32")
    if written is None:
        return ()
    return keyword_edits.cast(_operand(details), written, "Compare as float32 (exact up to 2**24)")


_ARITHMETIC = (
    *("_add_lowering_rule", "_sub_lowering_rule", "_mul_lowering_rule", "_div_lowering_rule", "_rem_lowering_rule"),
    *("_max_lowering_rule", "_min_lowering_rule", "_abs_lowering_rule", "_mulhi_lowering_rule", "_neg_lowering_rule"),
    *("_cmp_lowering_rule", "_lower_fun", "ir_constant", "_integer_pow_lowering_rule"),
)
_ROWS = (
    Row(
        _FILE,
        ("_convert_element_type_lowering_rule",),
        _wide,
        "64-bit",
        at=narrow_types.place,
        fixes=narrow_types.fixes,
    ),
    Row(
        _FILE,
        ("_convert_helper",),
        "`{source}` casts {from} to {to}, which a TPU kernel cannot do: cast by way of float32 or int32.",
        r"Unsupported cast: (?P<from>\w+) -> (?P<to>\w+)",
    ),
    Row(
        _FILE,
        ("_lowering_rule",),
        _reduced,
        "Reductions over",
        fixes=_through_32_bits,
    ),
    Row(_FILE, ("_reduce_index_helper",), _index, "input dtype|Only float32|index_dtype", fixes=_index_fixes),
    Row(
        _FILE,
        ("_reduce_index_helper",),
        "`{source}` finds an index along {axes} of {a}, but a TPU kernel can do that along one axis only.",
        "single axis",
    ),
    Row(
        _FILE,
        _ARITHMETIC,
        "`{source}` works on {a}, a type that a TPU kernel cannot compute with here: cast to float32 or int32 first.",
        exceptions=("NotImplementedError", "ValueError"),
    ),
    Row(
        _FILE,
        ("_dtype_to_ir_type", "aval_to_ir_type"),
        "`{source}` needs a type that a TPU kernel does not have: {what}.",
        r"(?:Extended dtype (?P<what>\S+) is unsupported)",
    ),
    Row(
        _FILE,
        ("aval_to_ir_type",),
        "`{source}` works on {a}: a TPU kernel has no such element type (complex numbers, for one). Pass real and "
        "imaginary parts as two arrays.",
        "elementType|VectorElementType|MemRefElement",
    ),
    Row(
        _FILE,
        ("_reciprocal_lowering_rule",),
        "`{source}` takes {a}: `pl.reciprocal` is there for float32 (and bfloat16 from jax 0.11) only.",
        at=((0, "x"),),
    ),
    Row(
        _FILE,
        ("_stochastic_round_lowering_rule",),
        "`{source}` rounds {a}: stochastic rounding takes float32, and gives bfloat16 or an 8-bit float.",
        at=((0, "x"),),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
