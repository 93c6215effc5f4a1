"""
## What it does
Finds operations of SparseCore kernels with shapes, types or memories that a SparseCore does not have: vectors of
another length than its lanes, sums along other axes, gathers and scatters between memories that cannot do it.

## Why it is wrong
A vector subcore of a SparseCore works on vectors of exactly as many lanes as it has (16 32-bit numbers on a TPU 7x),
from memory of its own. Gathers and scatters are copies (`pltpu.async_copy` with an index array) or loads
(`plsc.load_gather`).

## Example
```python
x = x_vmem[...]  # a vector of 64 numbers
```

## Use instead
```python
@pl.loop(0, 64, step=16)
def _(i):
    x = x_vmem[pl.ds(i, 16)]
```

## Fix safety
This rule offers no fix.

## Applies to
SparseCore kernels for TPUs; jax 0.10, 0.11 and 0.12.

## Source
`jax/_src/pallas/mosaic/sc_primitives.py` and `jax/_src/pallas/mosaic/sc_lowering.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.site_table import Details

SINCE = "0.1.0"
CONSTRUCTS = ("TPU",)
SPECIFICITY = 40

_PRIMITIVES = "jax/_src/pallas/mosaic/sc_primitives.py"
_LOWERING = "jax/_src/pallas/mosaic/sc_lowering.py"
SITES = tuple(
    (file, name)
    for file, names in (
        (
            _PRIMITIVES,
            (
                *("_load_abstract_eval", "load_expanded", "_swap_abstract_eval", "store_compressed", "addupdate"),
                *("addupdate_compressed", "_indexed_shape", "_gather_abstract_eval", "_gather_lowering_rule"),
                *("_scatter_abstract_eval", "_scatter_lowering_rule", "store_scatter", "addupdate_scatter"),
                *("_scan_count_abstract_eval", "_masked_cummax_abstract_eval", "_masked_cumop_lowering_rule"),
                *("_reduce_op_lowering_rule", "cummax", "cummin", "_cumsum_lowering_rule", "cumsum"),
                *("_masked_sort_abstract_eval", "_parallel_loop_abstract_eval", "_pack_abstract_eval"),
                *("_pack_lowering_rule", "_unpack_abstract_eval", "_unpack_lowering_rule"),
                *("_mask_all_reduce_abstract_eval", "_fetch_and_add_abstract_eval", "fetch_and_add"),
            ),
        ),
        (
            _LOWERING,
            (
                *("_load_lowering_rule", "_store_lowering_rule", "_iota_lowering_rule_sc", "_check_aval_is_supported"),
                *("_prepare_dma_refs", "_dma_start_lowering_rule", "_dma_wait_lowering_rule"),
                *("_extract_indirect_offsets_from_indices", "_extract_indirect_offsets", "_sort_lowering_rule"),
                *("_rev_lowering_rule",),
            ),
        ),
    )
    for name in names
)


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None or site.file not in (_PRIMITIVES, _LOWERING):
        return None
    details = Details(fault, context)
    said = clean(fault.message)
    if not said:
        return None
    types = [t for t in (details.equation.inputs if details.equation is not None else ()) if "[" in t]
    given = f" (It works on {', '.join(types[:3])}.)" if types and "[" not in said else ""
    message = f"`{details.source}` is not possible on a SparseCore: {said[0].lower()}{said[1:]}{given}"
    return site_table.make(rule_name(__name__), fault, context, details.location, message)
