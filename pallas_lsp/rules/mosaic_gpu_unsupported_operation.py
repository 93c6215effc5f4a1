"""
## What it does
Finds operations in a kernel that Mosaic GPU cannot lower, such as `jnp.cumsum`, `jnp.sort`, `jnp.dot`, `x[indices]`
or `x.T` on values in registers, and says what to write instead.

## Why it is wrong
A Mosaic GPU kernel works on values that are spread over the registers of a warpgroup. There are element-wise
operations, reductions, broadcasts and reshapes; matrix products are instructions of their own that read shared
memory. Whatever moves elements between threads in an irregular way (a gather, a sort, a transpose, a running sum) has
no lowering.

## Example
```python
o_ref[...] = jnp.dot(a_ref[...], b_ref[...])
o_ref[...] = table_ref[...][indices_ref[...]]
```

## Use instead
```python
plgpu.wgmma(acc_ref, a_smem, b_smem)

@pl.loop(0, indices_ref.shape[0])
def _(row):
    o_ref[row] = table_ref[indices_ref[row]]
```

The message says what to use for the operation at hand.

## Fix safety
The fixes are suggestions, but for parts of a value that are read from its ref instead.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`lower_jaxpr_to_mosaic_gpu`, `_estimate_resources`, `_slice_lowering_rule`, `_scan_lowering_rule` and other rules in
`jax/_src/pallas/mosaic_gpu/lowering.py`; `infer_layout` in `jax/experimental/mosaic/gpu/layout_inference.py`, "No
layout inference rule defined".
"""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared import ref_loads, replacements
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_layouts import conflict, inferred, made_iota
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU
from pallas_lsp.rules.shared.gpu_rewrites import advice, elementwise, row_by_row, transposed_outside
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, narrowed

SINCE = "0.1.0"
CONSTRUCTS = ("primitives",)
SITES = (
    (LOWERING, "lower_jaxpr_to_mosaic_gpu"),
    (LOWERING, "_estimate_resources"),
    (LOWERING, "_slice_lowering_rule"),
    (LOWERING, "_slice_lowering_rule_wg"),
    (LOWERING, "_program_id_lowering_rule"),
    (LOWERING, "_iota_lowering"),
    (f"{MGPU}layout_inference.py", "infer_layout.<locals>.gather_constraints"),
    (f"{MGPU}dialect_lowering.py", "LoweringContext.lower_op"),
    (f"{MGPU}dialect_lowering.py", "_binary_op_lowering_rule"),
    (LOWERING, "<lambda>"),
)
_UNIMPLEMENTED = re.compile(r"Unimplemented primitive in Pallas Mosaic GPU lowering: (?P<name>[\w-]+)")
_RESOURCES = re.compile(r"Resource estimation does not support (?P<name>[\w-]+)")
_KERNELS = ("mpmd_map", "core_map", "pallas_call", "run_scoped")
_OPERATORS = {"%": "rem", "//": "div", "**": "pow"}
_MATH = re.compile(
    r"(?:No layout inference rule defined for|Missing lowering rule for) (?:%\S+ = )?\"?(?P<name>[\w.]+)"
)
_REMAINDER = re.compile(r"unsupported operand type\(s\) for (?P<op>\S+):")


def judge(fault: Fault, context: Context) -> Finding | None:
    location = context.locate(fault)
    name = _name(fault, context) or _inside(fault, context)
    if name is None:
        return None
    details = Details(fault, context, re.compile("").match("") or _never())
    spot = details.spot
    source = details.source
    lane = "LoweringSemantics.Lane" in fault.message
    what = "Mosaic GPU"
    if "user thread semantics PrimitiveSemantics.Warp." in fault.message:
        what = "the code of a single warp"
    elif lane and context.jax >= (0, 11):
        what = "Mosaic GPU under lane semantics"
    fixes = list(_fixes(context, fault, details, spot, name))
    if fault.equation is not None and fault.equation.primitive in _KERNELS and name not in _KERNELS:
        source = "This kernel"
        location = narrowed(location, context)
    quoted = source if source == "This kernel" else f"`{source}`"
    text = f"{quoted} needs `{name}`, which {what} does not have. {advice(name)}"
    if name == "slice" and spot is not None and isinstance(spot.node, ast.Call):
        text = (
            f"`{source}` takes a value in registers apart (`slice`), which {what} cannot do here. Read the parts from "
            "the ref, and store each into its place."
        )
    elif name == "slice":
        text = f"`{source}` takes every n-th element of a value in registers, which {what} cannot do. {advice(name)}"
    reads = next((f.title.partition("`")[2].partition("`")[0] for f in fixes if f.title.startswith("Read `")), None)
    if reads is not None:
        text = f"`{source}` takes a part of a value in registers (`{name}`), which {what} cannot do. Read `{reads}`."
    return finding(__name__, fault, context, narrowed(location, context), text, (), fixes)


_CALLED = {
    "argsort": "sort",
    "sort": "sort",
    "take": "gather",
    "take_along_axis": "gather",
    "argmax": "argmax",
    "argmin": "argmin",
    "top_k": "top_k",
    "roll": "slice",
    "searchsorted": "sort",
    "unique": "sort",
}


def _inside(fault: Fault, context: Context) -> str | None:
    """The operation at fault where jax already fails at what it needs inside: counting numbers, a broadcast."""
    if not raised_in(fault, LOWERING, "_iota_lowering", "_broadcast_in_dim_lowering_rule"):
        return None
    location = context.locate(fault)
    syntax, node = context.syntax(location.path), context.node(location)
    if syntax is None or not isinstance(node, ast.expr) or made_iota(Spot(location.path, syntax, node)):
        return None
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        plain = (ast.Slice, ast.Constant, ast.UnaryOp)
        return None if all(isinstance(part, plain) for part in parts) else "gather"
    called = (syntax.called(node) or "").rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return _CALLED.get(called)


def _never() -> re.Match[str]:
    raise AssertionError("an empty pattern matches")


def _name(fault: Fault, context: Context) -> str | None:
    for pattern in (_UNIMPLEMENTED, _RESOURCES):
        if (match := pattern.search(fault.message)) is not None:
            return match["name"]
    if raised_in(fault, LOWERING, "_slice_lowering_rule", "_slice_lowering_rule_wg"):
        return "slice"
    parts = conflict(fault, context) if inferred(fault) else []
    if parts and parts[-1].operation == "vector_concat" and not any(part.layout for part in parts):
        return "concatenate"
    if raised_in(fault, LOWERING, "_program_id_lowering_rule"):
        return "program_id"
    if raised_in(fault, f"{MGPU}layout_inference.py", "gather_constraints") or raised_in(
        fault, f"{MGPU}dialect_lowering.py", "lower_op"
    ):
        match = _MATH.search(fault.message)
        return match["name"].rpartition(".")[2] if match is not None else None
    if fault.exception.endswith("TypeError") and "FragmentedArray" in fault.message and fault.equation is not None:
        match = _REMAINDER.search(fault.message)
        if match is None:
            return None
        name = fault.equation.primitive
        return name if name not in _KERNELS else _OPERATORS.get(match["op"], match["op"])
    return None


def _fixes(context: Context, fault: Fault, details: Details, spot: Spot | None, name: str) -> list[Fix]:
    if spot is None:
        return []
    found: list[Fix | None] = list(replacements.fixes(details)) if name != "slice" else []
    if name == "gather" and not found:
        found.append(ref_loads.read_parts(spot, replacements.rank_of(details.inputs(0))))
    if name == "gather":
        found = [row_by_row(spot)]
    if name == "transpose":
        found.append(transposed_outside(context, fault, spot))
    found.append(elementwise(spot, name))
    return [fix for fix in found if fix is not None]
