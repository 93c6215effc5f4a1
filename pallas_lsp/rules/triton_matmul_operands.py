"""
## What it does
Finds matrix products in a Triton kernel that Triton cannot compute: of operands that are not 2-D (a vector, a batch),
of two different types, of unsigned integers, of float64 blocks that are too small, or with a precision that it does not
have.

## Why it is wrong
A product becomes one `tt.dot` on the tensor cores: two matrices of the same type. There is no product of a matrix and a
vector and no batch dimension, and nothing is converted on the way.

## Example
```python
def kernel(x_ref, v_ref, o_ref):
    o_ref[...] = x_ref[...] @ v_ref[...]  # a matrix and a vector
```

## Use instead
```python
def kernel(x_ref, v_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...] * v_ref[...][None, :], axis=1)
```

For a batch, give the batch an axis of the grid. For two types, cast one of them.

## Fix safety
Every fix is suggested: sums round differently from products on tensor cores, and casts may lose precision or time.

## Applies to
Kernels for NVIDIA GPUs that are lowered through Triton; jax 0.10, 0.11 and 0.12.

## Source
`_dot_general_lowering` in `jax/_src/pallas/triton/lowering.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, matmuls, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("Triton",)

_FILE = "jax/_src/pallas/triton/lowering.py"
_SITE = ("_dot_general_lowering",)


def _not_2d(details: Details) -> str:
    ranks = [matmuls.rank(details.inputs(i)) for i in (0, 1)]
    types = f"{details.inputs(0)} and {details.inputs(1)}"
    if 1 in ranks:
        instead = "multiply element-wise and sum with `jnp.sum`."
    else:
        instead = "reshape them to matrices, or give the other dimensions axes of the grid."
    return f"`{details.source}` multiplies {types}, but Triton multiplies only matrices (2-D): {instead}"


def _batched(details: Details) -> str:
    return (
        f"`{details.source}` is a product of a batch of matrices ({details.inputs(0)} and {details.inputs(1)}), but "
        "Triton multiplies only two matrices (2-D) at a time: give the batch an axis of the grid, or loop over it with "
        "`jax.lax.fori_loop`."
    )


def _small(details: Details) -> str:
    return (
        f"`{details.source}` multiplies {details.inputs(0)} and {details.inputs(1)}: float64 blocks have to be at "
        f"least 16 x 16 and 16 x 8, but {details['sizes']}."
    )


_ROWS = (
    Row(
        _FILE,
        _SITE,
        "`{source}` multiplies unsigned integers ({a} and {b}), which Triton would take for signed ones: cast both "
        "factors to a signed type.",
        "Unsigned integer",
        fixes=lambda d: matmuls.cast_both(
            d, matmuls.dtype_of(d.inputs(0)).removeprefix("u"), " (values above its maximum wrap)"
        ),
    ),
    Row(
        _FILE,
        _SITE,
        "`{source}` multiplies {a} and {b}, but Triton multiplies only two matrices of the same type: cast one of "
        "them.",
        "same element type",
        fixes=matmuls.cast_to_same,
    ),
    Row(_FILE, _SITE, _small, r"float64 dot requires .* got (?P<sizes>.*)$"),
    Row(_FILE, _SITE, _not_2d, "must be 2D", fixes=matmuls.with_sum),
    Row(
        _FILE,
        _SITE,
        "`{source}` asks for the algorithm `{algorithm}`, which Triton does not have: use e.g. "
        "`jax.lax.DotAlgorithmPreset.TF32_TF32_F32` or `F32_F32_F32`, or leave `precision` out.",
        r"Unsupported dot algorithm: (?P<algorithm>\w+)",
        at=((2, "precision"), (None, "precision")),
        fixes=lambda d: keyword_edits.remove_keyword(d.spot, "precision", "Leave the precision to Triton"),
    ),
    Row(
        _FILE,
        _SITE,
        "`{source}` asks for a precision that Triton does not have: leave `precision` out.",
        "Unsupported dot precision",
        at=((2, "precision"), (None, "precision")),
        fixes=lambda d: keyword_edits.remove_keyword(d.spot, "precision", "Leave the precision to Triton"),
    ),
    Row(_FILE, _SITE, _batched, exceptions=("AssertionError",)),
    Row(
        _FILE,
        _SITE,
        "`{source}` sums over several or no dimensions of {a} and {b}, but Triton multiplies only matrices, over one: "
        "reshape them to matrices first, or multiply element-wise and use `jnp.sum`.",
        "values to unpack",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
