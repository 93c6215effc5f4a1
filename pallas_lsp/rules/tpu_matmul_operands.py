"""
## What it does
Finds matrix products of a TPU kernel that the matrix unit cannot compute: with a result of less than 32 bits, of
unsigned integers, of unsupported types, or with a precision that it does not have; also convolutions of such types.

## Why it is wrong
The matrix unit multiplies small types and sums in float32 (or int32). A result in bfloat16 or int8 has to be converted
afterwards. jax's `jnp.dot` of two bfloat16 matrices asks for a bfloat16 result unless told otherwise.

## Example
```python
o_ref[...] = jnp.dot(x_ref[...], y_ref[...])  # all bfloat16
```

## Use instead
```python
acc = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
o_ref[...] = acc.astype(jnp.bfloat16)
```

## Fix safety
Accumulating in 32 bits is safe: that is what the hardware does. Leaving out a precision and casting operands is
suggested.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`_dot_general_lowering_rule` and `_conv_lowering_rule` in `jax/_src/pallas/mosaic/lowering.py`, and Mosaic's own
verifier ("Expected matmul acc to be 32-bit").
"""

from __future__ import annotations

from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, matmuls, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("TPU",)

_FILE = "jax/_src/pallas/mosaic/lowering.py"
_DOT, _CONV = ("_dot_general_lowering_rule",), ("_conv_lowering_rule",)
_PRECISION = ((2, "precision"), (None, "precision"))


def _precision(details: Details) -> Sequence[Fix]:
    return keyword_edits.remove_keyword(details.spot, "precision", "Leave the precision to the matrix unit")


_NARROW = (
    "`{source}` gives {out}, but the matrix unit of a TPU sums in 32 bits: ask for that with "
    "`preferred_element_type=jnp.float32` (int32 for integers) and cast the result."
)
_ROWS = (
    Row(
        _FILE,
        ("_lower_jaxpr_to_func_common",),
        _NARROW,
        "Expected matmul acc to be 32-bit",
        fixes=matmuls.accumulate_wide,
    ),
    Row(
        _FILE,
        (*_DOT, *_CONV),
        "`{source}` multiplies unsigned integers ({a} and {b}), which the matrix unit would take for signed ones: cast "
        "both factors to a signed type.",
        "Unsigned integer",
        fixes=lambda d: matmuls.cast_both(
            d, matmuls.dtype_of(d.inputs(0)).removeprefix("u"), " (values above its maximum wrap)"
        ),
    ),
    Row(_FILE, _DOT, _NARROW, r"^(?:b?float16|float8\w*|int8|int16|int4)$", fixes=matmuls.accumulate_wide),
    Row(
        _FILE,
        _DOT,
        "`{source}` multiplies {a} and {b} to {out}, a type that the matrix unit of a TPU cannot compute with: cast "
        "both factors to float32 or bfloat16.",
        r"^\w+$",
        fixes=lambda d: matmuls.cast_both(d, "float32"),
    ),
    Row(
        _FILE,
        _DOT,
        "`{source}` gives its factors two different precisions, which a TPU kernel cannot do: use one for both.",
        "Per-operand",
        at=_PRECISION,
        fixes=_precision,
    ),
    Row(
        _FILE,
        _DOT,
        "`{source}` asks for `{precision}`, which a TPU's matrix unit does not have: there are DEFAULT and HIGHEST "
        "of `jax.lax.Precision` (HIGH only from jax 0.11).",
        "Unsupported dot precision|DotAlgorithm",
        at=_PRECISION,
        fixes=_precision,
    ),
    Row(
        _FILE,
        _DOT,
        "`{source}` multiplies {a} with a vector and asks for {preferred_element_type}: that works for float32 only.",
        "preferred_element_type",
        at=((None, "preferred_element_type"),),
    ),
    Row(
        _FILE,
        (*_CONV, "_parse_precision_attr"),
        "`{source}` asks for a precision that a TPU kernel does not have for convolutions: use one of DEFAULT, HIGH "
        "and HIGHEST for both operands.",
        "precision",
        at=_PRECISION,
        fixes=_precision,
    ),
    Row(
        _FILE,
        _CONV,
        "`{source}` convolves {a} and {b} to {out}, a type that a TPU kernel cannot convolve: cast to float32 or "
        "bfloat16.",
        r"^\w+$",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
