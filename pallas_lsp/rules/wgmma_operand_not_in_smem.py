"""
## What it does
Finds operands of `plgpu.wgmma` that are where the instruction cannot read: a right operand that is a value, operands
in GMEM.

## Why it is wrong
wgmma reads its right operand from shared memory, and its left operand from shared memory or registers. What lies in
GMEM has to be copied to SMEM first; a value of the right operand has to be stored to SMEM.

## Example
```python
plgpu.wgmma(acc_ref, a_smem, b_smem[...])
```

## Use instead
```python
plgpu.wgmma(acc_ref, a_smem, b_smem)
```

## Fix safety
Giving the ref instead of its value is safe: the product is the same.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`wgmma` in `jax/_src/pallas/mosaic_gpu/primitives.py`, which does not check it: jax fails later, in
`make_jaxpr_effects` (`jax/_src/interpreters/partial_eval.py`), in layout inference or in `_wgmma_lowering`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.gpu_mma import mma_of
from pallas_lsp.rules.shared.gpu_operands import PARAMETERS, PRIMITIVES, called, place, quoted
from pallas_lsp.rules.shared.launches import born
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("wgmma", "SMEM and TMEM")
SPECIFICITY = 52
SITES = (
    ("jax/_src/interpreters/partial_eval.py", "make_jaxpr_effects"),
    ("jax/_src/core.py", "_shift_arg_names"),
    (PRIMITIVES, "_wgmma_lowering"),
    ("jax/experimental/mosaic/gpu/layout_inference.py", "ValueSite.memory_space"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    unknown = fault.facts.get("unknown_ref")
    if isinstance(unknown, Mapping) and str(unknown.get("primitive", "")).startswith("wgmma"):
        return _value(fault, context, unknown)
    mma = mma_of(fault, "wgmma")
    if mma is None:
        return None
    for ref in (mma.a, mma.b):
        if ref.space == "gmem":
            name = quoted(context, fault, ref.name, ref.name)
            text = (
                f"{name} is in GMEM, but `wgmma` reads its operands from SMEM: copy it there first, with "
                "`plgpu.copy_gmem_to_smem` and a barrier."
            )
            return finding(__name__, fault, context, place(context, fault, ref.name), text)
    return None


def _value(fault: Fault, context: Context, unknown: Mapping[str, Any]) -> Finding | None:
    call = born(context, unknown.get("frames"))
    node: ast.AST | None = call.node if call is not None else None
    if call is None or not isinstance(node, ast.Call):
        return None
    given = call.syntax.arguments(node).get(2, "b") if called(call.syntax, node) in PARAMETERS else None
    spot: Spot = call.at(given) if given is not None else call
    text = (
        f"`{short(spot.source, 40)}` is a value ({unknown.get('type')}), but `wgmma` reads its right operand from "
        "SMEM: give it the ref."
    )
    fixes = []
    if isinstance(spot.node, ast.Subscript) and _whole(spot.node.slice):
        edits = Editor(spot.path, spot.syntax)
        edits.replace(spot.node, spot.syntax.source(spot.node.value))
        fixes.append(safe("Give the ref instead of its value", edits))
    return finding(__name__, fault, context, Location(spot.path, spot.location.range), text, (), fixes)


def _whole(index: ast.expr) -> bool:
    if isinstance(index, ast.Constant):
        return index.value is ...
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None
