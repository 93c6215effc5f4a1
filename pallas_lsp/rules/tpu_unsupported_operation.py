"""
## What it does
Finds operations in a TPU kernel that jax cannot lower through Mosaic, such as `jnp.sort`, a gather of rows, or a
dynamic slice of a loaded value.

## Why it is wrong
A TPU kernel works on blocks in vector registers: element-wise operations, reductions, matrix products, broadcasts, and
loads and stores through refs. Parts of a value at places that are known only at run time cannot be taken from
registers; the refs in VMEM can be indexed instead.

## Example
```python
def kernel(ids_ref, table_ref, o_ref):
    table = table_ref[...]
    o_ref[0, :] = table[ids_ref[0]]  # a dynamic slice of a value
```

## Use instead
```python
def kernel(ids_ref, table_ref, o_ref):
    o_ref[0, :] = table_ref[ids_ref[0]]  # a load of that row
```

The message says what to use for the operation at hand: index the ref, store into a part of the output, loop with
`jax.lax.fori_loop`, or compute it outside of the kernel.

## Fix safety
Reading a part from the ref is safe where the kernel does not store to that ref, and suggested otherwise. Storing an
updated part is safe.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`jaxpr_subcomp` and the lowering rules of `gather`, `top_k`, `reshape`, `iota`, `pad`, `round`, `select_n`, casts and
others in `jax/_src/pallas/mosaic/lowering.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Backend, Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, replacements, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "primitives")

_FILE = "jax/_src/pallas/mosaic/lowering.py"
_FIX = replacements.fixes


def _unimplemented(details: Details) -> str:
    core = details["core"]
    where = "a TPU kernel" if core in ("", "tc") else "a SparseCore kernel"
    return replacements.needs(details, Backend.TPU, where)


_ACCURACY = (
    *("_rsqrt_lowering_rule", "_sqrt_lowering_rule", "_exp_lowering_rule", "_exp2_lowering_rule", "_erf_lowering_rule"),
    *("_logistic_lowering_rule", "_sin_lowering_rule", "_cos_lowering_rule", "_tan_lowering_rule"),
    *("_tanh_lowering_rule", "_log_lowering_rule", "_log2_lowering_rule", "_log1p_lowering_rule"),
    *("_atan2_lowering_rule",),
)
_ROWS = (
    Row(
        _FILE,
        ("jaxpr_subcomp",),
        _unimplemented,
        r"primitive in Pallas TPU lowering for (?P<core>[\w.]+): (?P<name>[\w-]+)",
        fixes=_FIX,
    ),
    Row(
        _FILE,
        ("_gather_lowering_rule",),
        "`{source}` picks parts of {a} by an array of indices ({b}), which a TPU kernel can only do with an index for "
        f"each element. {replacements.advice('gather', Backend.TPU)}",
        "take_along_axis",
    ),
    Row(
        _FILE,
        ("_gather_lowering_rule",),
        "`{source}` gathers from {a} along an axis that is not one of the last two: a TPU kernel can only gather along "
        "those. Move the axis to the end, or loop over the others.",
        "minormost",
    ),
    Row(
        _FILE,
        ("_gather_lowering_rule",),
        "`{source}` gathers from {a} with {b} in a way that a TPU kernel cannot: the indices have to have the output's "
        "shape, as for `jnp.take_along_axis`.",
    ),
    Row(
        _FILE,
        ("_top_k_lowering_rule", "_approx_top_k_lowering_rule"),
        "`{source}` asks for a stable order, which a TPU kernel does not have. Pass `is_stable=False`.",
        "is_stable",
        at=((None, "is_stable"),),
        fixes=lambda details: keyword_edits.set_keyword(
            details.spot, "is_stable", "False", "Take any order among equals"
        ),
    ),
    Row(
        _FILE,
        ("_top_k_lowering_rule", "_approx_top_k_lowering_rule"),
        "`{source}` takes the top k of {a}: in a TPU kernel that works for float32 and bfloat16 only. "
        "Cast the operand first.",
        "only supports float32",
        at=((0, "operand"),),
    ),
    Row(
        _FILE,
        ("_top_k_lowering_rule", "_approx_top_k_lowering_rule"),
        "`{source}`: {type} top-k is not available on {chips}.",
        r"(?P<type>float32|bfloat16) \w*top_k is not supported on (?P<chips>[^.]*)",
    ),
    Row(
        _FILE,
        ("_approx_top_k_lowering_rule",),
        "`{source}` cannot be lowered in a TPU kernel: only `jax.lax.approx_max_k` with `aggregate_to_topk=True` can.",
        "is_max_k|aggregate_to_topk",
        at=((None, "aggregate_to_topk"),),
    ),
    Row(
        _FILE,
        ("_approx_top_k_lowering_rule", "_approx_max_k_impl"),
        "`recall_target` has to be above 0 and at most 1, but is {given}.",
        r"recall_target must be in .*got (?P<given>\S+)",
        at=((None, "recall_target"),),
    ),
    Row(
        _FILE,
        ("_reshape_lowering_rule",),
        "`{source}` reshapes {a} to {out} in an order of its own (`dimensions`), which a TPU kernel cannot do. "
        "Transpose first, then reshape.",
    ),
    Row(
        _FILE,
        ("_iota_lowering_rule",),
        "`{source}` counts along axis {dimension} of {out}: a 1-D iota has only axis 0.",
        at=((2, "dimension"),),
    ),
    Row(
        _FILE,
        ("_select_n_lowering_rule",),
        "`{source}` chooses among more than two arrays, which a TPU kernel cannot do. Nest `jnp.where` instead.",
    ),
    Row(
        _FILE,
        ("_bitcast_convert_type_lowering_rule",),
        "`{source}` reads {a} as `{new_dtype}`, whose width differs: use `pltpu.bitcast`, which packs along the "
        "second-last axis.",
        at=((1, "new_dtype"),),
    ),
    Row(
        _FILE,
        ("_bitcast_lowering_rule",),
        "`{source}` changes the width of {a} along its last axis, which the TensorCore cannot do. "
        "Bitcast along the second-last axis instead (leave out `dim=`).",
        at=((2, "dim"),),
    ),
    Row(
        _FILE,
        ("_pad_lowering_rule",),
        "`{source}` pads between the elements, which a TPU kernel cannot do. Pad outside of the kernel.",
        "interior",
    ),
    Row(
        _FILE,
        ("_pad_lowering_rule",),
        "`{source}` pads a scalar, which a TPU kernel cannot do. Make an array with `jnp.full` instead.",
        "vector types",
    ),
    Row(
        _FILE,
        ("_round_lowering_rule",),
        "`{source}` rounds with `{rounding_method}`, which a TPU kernel does not have. "
        "Use `jnp.round` or `jax.lax.round` with TO_NEAREST_EVEN or AWAY_FROM_ZERO.",
        at=((1, "rounding_method"),),
    ),
    Row(
        _FILE,
        ("_reduce_precision_lowering_rule",),
        "`{source}` rounds to another precision in place, which a TPU kernel cannot do. "
        "Cast to the smaller type and back instead.",
    ),
    Row(
        _FILE,
        ("_population_count_lowering_rule",),
        "`{source}` counts the bits of a scalar, which a TPU kernel cannot do. Count the bits of an array instead.",
    ),
    Row(
        _FILE,
        ("_squeeze_lowering_rule",),
        "`{source}` makes a scalar of {a}: only 32-bit elements can leave the vector registers. "
        "Cast to a 32-bit type first.",
    ),
    Row(
        _FILE,
        ("_broadcast_to_lowering_rule",),
        "`{source}` is an operation of Triton kernels. Use `jnp.broadcast_to`.",
    ),
    Row(
        _FILE,
        _ACCURACY,
        "`{source}` asks for an accuracy, which a TPU kernel cannot choose. Leave `accuracy` out.",
        "accuracy",
        at=((None, "accuracy"),),
    ),
    Row(
        _FILE,
        ("_check_lowering_rule",),
        "`{source}` checks at run time, which a TPU kernel can only do with `pl.debug_check`. "
        "Use that, or functionalize the check with `jax.experimental.checkify`.",
    ),
    Row(
        _FILE,
        ("_platform_index_lowering",),
        "`{source}` has no branch for a TPU kernel: give one for `mosaic`, or a `default`.",
    ),
    Row(
        _FILE,
        ("_iota_2x32_shape_lowering",),
        "`{source}` makes more than 2**31 random numbers at once, which a TPU kernel cannot do.",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
