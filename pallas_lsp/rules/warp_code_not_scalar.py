"""
## What it does
Finds work on arrays in the code of single warps, inside `@pl.core_map(plgpu.WarpMesh(...))` and `plgpu.warp_map`.

## Why it is wrong
The values of a kernel are spread over the four warps of a warpgroup. Inside a `WarpMesh` each warp runs on its own,
so arrays cannot be read, stored or computed there, nor used from outside: only single numbers, refs, barriers and the
copies and products that one warp starts.

## Example
```python
@pl.core_map(plgpu.WarpMesh(axis_name="warp"))
def _():
    o_ref[...] = x_ref[...]
```

## Use instead
```python
o_ref[...] = x_ref[...]          # outside of the warps' code

@pl.core_map(plgpu.WarpMesh(axis_name="warp"))
def _():
    @pl.when(jax.lax.axis_index("warp") == 0)
    def _():
        plgpu.copy_gmem_to_smem(x_ref, x_smem, barrier)
```

## Fix safety
This rule offers no fix.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
The checks "warp-level" and "in a warp context" in `jax/_src/pallas/mosaic_gpu/lowering.py` and `primitives.py`;
`_core_map_lowering_rule` and `_mpmd_map_lowering_rule` in `lowering.py`; `_error_if_non_ref_consts` in
`jax/_src/pallas/mpmd.py`.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Backend, Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU, PRIMITIVES
from pallas_lsp.rules.shared.site_table import narrowed

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
SPECIFICITY = 58
_MPMD = "jax/_src/pallas/mpmd.py"
_RULES = (
    "_get_lowering_rule",
    "_get_lowering_rule_wg",
    "_swap_lowering_rule",
    "_swap_lowering_rule_wg",
    "_select_n_lowering_rule",
    "_convert_element_type_lowering_rule",
    "_convert_element_type_lowering_rule_wg",
    "_unary_warp_lowering_rule.<locals>._lowering_rule",
    "_binary_op_lowering_rule",
    "_binary_op_lowering_rule_wg",
    "_binary_boolean_op_lowering_rule_wg",
    "_comparison_lowering_rule_wg",
    "_debug_print_lowering_rule",
    "_sign_lowering_rule",
    "_core_map_lowering_rule",
    "_mpmd_map_lowering_rule",
)
SITES = (
    *((LOWERING, name) for name in _RULES),
    (PRIMITIVES, "_inline_mgpu_flat_transformed_args"),
    (PRIMITIVES, "_inline_mgpu_lowering_rule"),
    (PRIMITIVES, "_inline_mgpu_lowering_rule_wg_semantics"),
    (PRIMITIVES, "_barrier_arrive_lowering"),
    (PRIMITIVES, "_copy_smem_to_gmem_lowering"),
    (_MPMD, "_error_if_non_ref_consts"),
    (f"{MGPU}dialect_lowering.py", "LoweringContext.lower_op"),
)
_WARP = re.compile(r"warp-level|in warp|single-warp|warp context|warp semantics|Warp-level|WarpMesh")
_CAPTURED = re.compile(r"captures non-scalar array constants \[(?P<types>[^\]]*\])")


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None or site.file not in {file for file, _ in SITES}:
        return None
    captured = _CAPTURED.search(fault.message) if site.file == _MPMD else None
    capture = context.capture(fault)
    if captured is not None and (capture is None or capture.backend is not Backend.MOSAIC_GPU):
        return None
    if captured is None and _WARP.search(fault.message) is None:
        return None
    place = context.locate(fault)
    source = short(context.source(place), 50)
    if captured is not None or "close over" in fault.message:
        what = captured["types"] if captured is not None else fault.message.rpartition("shape ")[2].rstrip(".")
        text = (
            f"The code of single warps uses an array from outside ({what}): its elements are spread over all warps. "
            "Only single numbers and refs can be used there."
        )
    elif "nest" in fault.message:
        text = (
            "The code of single warps cannot be divided among warps again: one `WarpMesh` cannot stand inside another."
        )
    elif "collective barrier" in fault.message:
        text = f"`{source}` arrives on a barrier of the cluster from a single warp; the whole warpgroup has to do that."
    elif "Gather/scatter" in fault.message:
        text = f"`{source}` gathers or scatters rows, which a single warp cannot do; the whole warpgroup has to."
    elif "does not support warp semantics" in fault.message:
        text = f"`{source}` cannot be done by a single warp; do it outside of the warps' code."
    else:
        types = fault.equation.inputs if fault.equation is not None else ()
        of = f" ({', '.join(t for t in types if '[' in t and '[]' not in t)})" if types else ""
        text = (
            f"`{source}` works on an array{of} in the code of a single warp, where there are only single numbers: the "
            "elements of an array are spread over all warps of a warpgroup."
        )
    return finding(__name__, fault, context, narrowed(place, context), text)
