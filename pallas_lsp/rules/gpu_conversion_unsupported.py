"""
## What it does
Finds conversions and arithmetic on element types that Mosaic GPU does not have: 8-bit arithmetic, conversions between
narrow floats, bit casts to another width, integer functions of floats.

## Why it is wrong
Registers hold elements of 8 to 64 bits, but the GPU computes in 16 and 32 bits: `+` on int8 or float8 has to be done
on a wider type. Between some narrow floats there is no instruction; the way leads through float32.

## Example
```python
o_ref[...] = x_ref[...] + x_ref[...]                 # int8
o_ref[...] = x_ref[...].astype(jnp.float8_e5m2)      # from bfloat16
```

## Use instead
```python
x = x_ref[...].astype(jnp.int32)
o_ref[...] = (x + x).astype(jnp.int8)
o_ref[...] = x_ref[...].astype(jnp.float32).astype(jnp.float8_e5m2)
```

## Fix safety
The fixes are suggestions: results may be rounded otherwise, or wrap around at another place.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`FragmentedArray._pointwise`, `astype`, `bitcast`, `max`, `exp` and others in
`jax/experimental/mosaic/gpu/fragmented_array.py`; `_convert_element_type_lowering_rule_wg`,
`_bitcast_convert_type_lowering_rule`, `_integer_pow_lowering_rule` and others in
`jax/_src/pallas/mosaic_gpu/lowering.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import dtype_text
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("element types",)
SPECIFICITY = 34
_ARRAY = f"{MGPU}fragmented_array.py"
_METHODS = (
    "astype",
    "bitcast",
    "max",
    "min",
    "copysign",
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "tanh",
    "rsqrt",
    "sqrt",
    "abs",
    "round",
    "round_even",
    "erf",
    "atan2",
    "trunc_div",
    "check_supported_rounding",
    "do_convert",
    "fast_instr",
)
_RULES = (
    "_convert_element_type_lowering_rule_wg",
    "_bitcast_convert_type_lowering_rule",
    "_integer_pow_lowering_rule",
    "_square_lowering_rule",
    "_abs_lowering_rule_wg",
    "_round_lowering_rule_wg",
    "sign",
    "_binary_op_lowering_rule_wg",
    "_comparison_lowering_rule_wg",
    "_rsqrt_lowering_rule",
    "_tanh_lowering_rule",
    "_logistic",
    "_exp_lowering_rule",
    "_exp2_lowering_rule",
    "_sin_lowering_rule",
    "_cos_lowering_rule",
    "_log_lowering_rule",
    "_sqrt_lowering_rule",
    "_log2_lowering_rule",
    "_ir_constant",
)
SITES = (
    (_ARRAY, "FragmentedArray._pointwise"),
    *((_ARRAY, f"FragmentedArray.{name}") for name in _METHODS[:-3]),
    (_ARRAY, "FragmentedArray.astype.<locals>.check_supported_rounding"),
    (_ARRAY, "FragmentedArray.astype.<locals>.pairwise_convert.<locals>.do_convert"),
    (_ARRAY, "FragmentedArray._lift_fast_instr.<locals>.fast_instr"),
    *((LOWERING, name) for name in _RULES if name != "sign"),
    (LOWERING, "_sign_lowering_rule.<locals>.sign"),
    (f"{MGPU}utils.py", "bitwidth_impl"),
)
_WIDER = {"i8": "int32", "u8": "uint32", "i4": "int32", "u4": "uint32", "bool": "int32"}


def judge(fault: Fault, context: Context) -> Finding | None:
    message = fault.message
    narrow = raised_in(fault, _ARRAY, "_pointwise") and "bit types are unsupported" in message
    method = raised_in(fault, _ARRAY, *_METHODS)
    rule = raised_in(fault, LOWERING, *_RULES) and "warp-level" not in message
    other = raised_in(fault, f"{MGPU}utils.py", "bitwidth_impl") and fault.equation is not None
    if not (narrow or method or rule or other) or fault.equation is None:
        return None
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    spot = Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.expr) else None
    source = short(context.source(place), 50)
    given, result = _type(fault.equation.inputs), _type(fault.equation.outputs)
    name = fault.equation.primitive
    fixes: list[Fix | None] = []
    if narrow:
        text = (
            f"`{source}` computes on {given}, but the GPU has no arithmetic on elements narrower than 16 bits: "
            "convert to a wider type first, and back at the end."
        )
        fixes = list(_widened(spot, given)) if spot is not None else []
    elif "accuracy" in message:
        text = f"`{source}` asks for an accuracy, which Mosaic GPU does not offer: leave the `accuracy` argument out."
    elif name == "bitcast_convert_type":
        text = (
            f"`{source}` reads {given} as {result}, whose elements have another width: only the same width is possible."
        )
    elif name == "convert_element_type":
        text = f"`{source}` converts {given} to {result}, which has no instruction: go through float32."
        fixes = [_through(spot)] if spot is not None else []
    elif other:
        text = f"`{source}` works on {given or result}, an element type that Mosaic GPU does not have."
    else:
        text = f"`{source}` ({name}) has no lowering for {given or result}: convert to float32 or int32 first."
        fixes = list(_widened(spot, given)) if spot is not None else []
    return finding(__name__, fault, context, narrowed(place, context), text, (), fixes)


def _type(types: tuple[str, ...]) -> str:
    return types[0].partition("[")[0].removeprefix("Ref<") if types else ""


def _widened(spot: Spot, given: str) -> Iterator[Fix | None]:
    """``x + y`` of narrow operands as ``(x.astype(wide) + y.astype(wide)).astype(narrow)``."""
    node = spot.node
    wide = _WIDER.get(given, "float32")
    edits = Editor(spot.path, spot.syntax)
    dtype = dtype_text(edits, node, wide)
    if dtype is None:
        return
    if isinstance(node, ast.BinOp):
        operands = [n for n in (node.left, node.right) if not isinstance(n, ast.Constant)]
    elif isinstance(node, ast.Call) and node.args:
        operands = [n for n in node.args if not isinstance(n, ast.Constant)]
    else:
        return
    first = operands[0] if operands else None
    if first is None:
        return
    for operand in operands:
        _cast(edits, spot, operand, dtype)
    back = _back(spot, first)
    if back is not None:
        start, end = spot.syntax.span(node)
        edits.insert(start, "(")
        edits.insert(end, f").astype({back})")
    yield suggested(f"Compute it in {wide}" + (" and convert back" if back is not None else ""), edits)


def _cast(edits: Editor, spot: Spot, operand: ast.expr, dtype: str) -> None:
    start, end = edits.whole(operand)
    simple = (
        isinstance(operand, ast.Name | ast.Call | ast.Subscript | ast.Attribute) or start < spot.syntax.span(operand)[0]
    )
    if simple:
        edits.insert(end, f".astype({dtype})")
    else:
        edits.insert(start, "(")
        edits.insert(end, f").astype({dtype})")


def _back(spot: Spot, operand: ast.expr) -> str | None:
    """The element type that the operand had, as an expression."""
    value = operand
    if isinstance(value, ast.Name):
        return f"{value.id}.dtype"
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        return f"{value.value.id}.dtype"
    del spot
    return None


def _through(spot: Spot) -> Fix | None:
    """``x.astype(narrow)`` as ``x.astype(jnp.float32).astype(narrow)``."""
    node = spot.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "astype":
        return None
    edits = Editor(spot.path, spot.syntax)
    dtype = dtype_text(edits, node, "float32")
    if dtype is None:
        return None
    edits.insert(spot.syntax.span(node.func.value)[1], f".astype({dtype})")
    return suggested("Convert through float32", edits)
