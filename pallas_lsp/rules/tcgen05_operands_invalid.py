"""
## What it does
Finds calls of `plgpu.tcgen05_mma` whose operands do not fit together or that Blackwell's tensor core does not have:
shapes, sizes, element types, scales.

## Why it is wrong
The product adds `a @ b`, (m, k) by (k, n), to an accumulator (m, n) in TMEM. m is 128 or 64 for one block; n is a
multiple of 8 up to 256, or 512. Both operands have one element type:

| operands | accumulator |
|---|---|
| float16 | float32 or float16 |
| bfloat16, float32 (tf32) | float32 |
| float8 | float32 or float16 |
| int8 | int32 |

With `collective_axis=` two blocks compute one product: each holds half of `b`, so the accumulator has 2 n columns and
is allocated with `collective=True`. Block-scaled products have both scales or none.

## Example
```python
plgpu.tcgen05_mma(acc_tmem, a_smem, b_smem, barrier)     # acc (128, 128), a (128, 64), b (128, 64)
```

## Use instead
```python
plgpu.tcgen05_mma(acc_tmem, a_smem, b_smem.T, barrier)
```

## Fix safety
The fixes are suggestions: they change the operands' shapes or types.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`tcgen05_mma` and `_tcgen05_mma_abstract_eval` in `jax/_src/pallas/mosaic_gpu/primitives.py`; `mma`, `_do_mma` and
`create_instr_descriptor` in `jax/experimental/mosaic/gpu/tcgen05.py`; the verifier of `mosaic_gpu.tcgen05_mma`; layout
inference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mesh import mesh_of
from pallas_lsp.rules.shared.gpu_mma import Mma, dtype_argument, dtype_text, mma_of
from pallas_lsp.rules.shared.gpu_operands import (
    MGPU,
    PRIMITIVES,
    VERIFIER,
    Operand,
    argument,
    place,
    quoted,
    shape_text,
)
from pallas_lsp.rules.shared.gpu_sizes import multiple, resized
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("tcgen05",)
SPECIFICITY = 45
SITES = (
    (PRIMITIVES, "tcgen05_mma"),
    (PRIMITIVES, "_tcgen05_mma_abstract_eval"),
    (f"{MGPU}tcgen05.py", "mma"),
    (f"{MGPU}tcgen05.py", "_do_mma"),
    (f"{MGPU}tcgen05.py", "create_instr_descriptor"),
    (f"{MGPU}layout_inference.py", "_tcgen05_mma_constraint_system"),
    (f"{MGPU}core.py", VERIFIER),
)
_ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32",),
    "float32": ("float32",),
    "float8_e4m3fn": ("float32", "float16"),
    "float8_e5m2": ("float32", "float16"),
    "float4_e2m1fn": ("float32",),
    "int8": ("int32",),
}


@dataclass(frozen=True)
class _Wrong:
    operand: str
    text: str
    fixes: list[Fix] = field(default_factory=list)


def judge(fault: Fault, context: Context) -> Finding | None:
    mma = mma_of(fault, "tcgen05_mma")
    if mma is None:
        return None
    unlike = fault.message.startswith("Accumulator") and "layout mismatch" in fault.message
    packed = _packed(fault, context, mma) if unlike or fault.facts.get("conflict") else None
    if packed is not None or fault.facts.get("conflict"):
        return packed
    names = {n: quoted(context, fault, n, n) for n in ("acc", "a", "b")}
    wrong = _collective(fault, context) or _rank(mma, names) or _shapes(fault, context, mma, names)
    wrong = wrong or _types(context, mma, names) or _sizes(context, mma, names) or _other(fault)
    if wrong is None:
        return None
    at = place(context, fault, wrong.operand) if wrong.operand else place(context, fault)
    related = [
        r for o in (mma.acc, mma.a, mma.b) for r in o.related(context, f"{names[o.name]} is allocated here: {o.type}.")
    ]
    return finding(__name__, fault, context, at, wrong.text, related, wrong.fixes)


def _packed(fault: Fault, context: Context, mma: Mma) -> Finding | None:
    """An accumulator of 16 bits with two elements in a column, as only operands lie; jax finds no layout for it."""
    spot = mma.acc.allocation.spot(context) if mma.acc.allocation is not None else None
    if spot is None or not isinstance(spot.node, ast.Call) or mma.acc.bits >= 32:
        return None
    packed = next((k for k in spot.node.keywords if k.arg == "packed"), None)
    if packed is None or not isinstance(packed.value, ast.Constant) or packed.value.value is not True:
        return None
    name = quoted(context, fault, "acc", "The accumulator")
    text = (
        f"{name} is allocated with `packed=True`, two elements of {mma.acc.dtype} in a column, as operands lie in "
        "TMEM. The tensor core writes an accumulator with one element in each column: `packed=False`."
    )
    edits = Editor(spot.path, spot.syntax)
    edits.replace(packed.value, "False")
    fixes = [suggested("Allocate it with `packed=False`, as an accumulator", edits)]
    related = mma.acc.related(context, f"{name} is allocated here: {mma.acc.type}.")
    return finding(__name__, fault, context, place(context, fault, "acc"), text, related, fixes)


def _collective(fault: Fault, context: Context) -> _Wrong | None:
    message = fault.message
    axis = fault.equation.params.get("collective_axis", "None") if fault.equation is not None else "None"
    axis = _named(context, fault) if axis == "None" else axis.strip("'\"")
    clusters = [str(name) for name in mesh_of(fault).get("cluster_names") or ()]
    if axis and context.capture(fault) is not None and axis not in clusters:
        has = f"its cluster axes are {', '.join(clusters)}" if clusters else "it has none"
        text = f'`collective_axis="{axis}"` is no cluster axis of this kernel: {has}. Two blocks of a cluster share it.'
        return _Wrong("collective_axis", text, [f for f in [_alone(context, fault)] if f is not None])
    if "must be collective if collective_axis" in message:
        name = "acc" if message.startswith("Accumulator") else "a"
        source = quoted(context, fault, name, name)
        text = (
            f"With `collective_axis` two blocks compute one product, so {source} has to be shared by both: allocate "
            "it with `collective=True`."
        )
        return _Wrong(name, text)
    if "a_scale and b_scale" in message or "both scales" in message:
        return _Wrong("a_scale", "A block-scaled product needs the scales of both operands, `a_scale` and `b_scale`.")
    return None


def _named(context: Context, fault: Fault) -> str:
    """The axis that the call names, where the fault comes before there is an equation."""
    spot = argument(context, fault, "collective_axis", "tcgen05_mma")
    value = spot.syntax.value(spot.node) if spot is not None else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _alone(context: Context, fault: Fault) -> Fix | None:
    """The product without ``collective_axis``."""
    spot = argument(context, fault, "collective_axis", "tcgen05_mma")
    keyword = spot.syntax.parent(spot.node) if spot is not None else None
    call = spot.syntax.parent(keyword) if spot is not None and keyword is not None else None
    if spot is None or not isinstance(keyword, ast.keyword) or not isinstance(call, ast.Call):
        return None
    edits = Editor(spot.path, spot.syntax)
    edits.remove_argument(call, keyword)
    return suggested("Leave `collective_axis` out: each block computes a product of its own", edits)


def _rank(mma: Mma, names: dict[str, str]) -> _Wrong | None:
    for operand in (mma.acc, mma.a, mma.b):
        if operand.shape is not None and len(operand.shape) != 2:
            text = f"{names[operand.name]} is {shape_text(operand.shape)}, but `tcgen05_mma` takes matrices."
            return _Wrong(operand.name, text)
    return None


def _shapes(fault: Fault, context: Context, mma: Mma, names: dict[str, str]) -> _Wrong | None:
    if not mma.two_dimensional:
        return None
    m, n, am, ak, bk, bn = mma.mnk
    together = argument(context, fault, "collective_axis", "tcgen05_mma") is not None or (
        "collective mode" in fault.message
    )
    if fault.equation is not None and fault.equation.params.get("collective_axis", "None") != "None":
        together = True
    columns = bn * 2 if together else bn
    sparse = "sparse" in fault.message.lower()
    if ak != bk and not sparse:
        text = f"{names['a']} has {ak} columns, but {names['b']} has {bk} rows: (m, k) is multiplied by (k, n)."
        fix = _transposed(context, fault, "b") if (bk, bn) == (n, ak) and m == am else None
        return _Wrong("b", text, [fix] if fix is not None else [])
    if m != am:
        text = f"{names['acc']} has {m} rows, but {names['a']} has {am}: the product is ({am}, {columns})."
        return _Wrong("a", text)
    if n != columns:
        note = f" (twice the {bn} of each of two blocks)" if together else ""
        text = f"{names['acc']} has {n} columns, but the product has {columns}{note}: {names['b']} is {mma.b.type}."
        made = mma.acc.allocation
        fixes = []
        if made is not None and made.shape == mma.acc.shape:
            fixes = list(resized(made.spot(context), 1, n, columns, "the columns of the product"))
        return _Wrong("acc", text, fixes)
    return None


def _transposed(context: Context, fault: Fault, name: str) -> Fix | None:
    spot = argument(context, fault, name)
    if spot is None:
        return None
    edits = Editor(spot.path, spot.syntax)
    plain = isinstance(spot.node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    edits.replace(spot.node, f"{spot.source if plain else f'({spot.source})'}.T")
    return suggested(f"Transpose `{name}`: (n, k) is read as (k, n)", edits)


def _types(context: Context, mma: Mma, names: dict[str, str]) -> _Wrong | None:
    a, b, acc = mma.a.dtype, mma.b.dtype, mma.acc.dtype
    if a != b and not (a.startswith("float8") and b.startswith("float8")):
        return _Wrong("b", f"{names['a']} is {a} and {names['b']} is {b}: both operands need one element type.")
    allowed = _ACCUMULATORS.get(a)
    if allowed is None:
        known = ", ".join(_ACCUMULATORS)
        return _Wrong("a", f"{names['a']} is {a}, which the tensor core cannot multiply: it takes {known}.")
    if acc in allowed:
        return None
    text = f"{names['acc']} is {acc}, but products of {a} operands are accumulated in {' or '.join(allowed)}."
    return _Wrong("acc", text, list(_retyped(context, mma.acc, allowed)))


def _retyped(context: Context, acc: Operand, allowed: tuple[str, ...]) -> Iterator[Fix]:
    made = acc.allocation.spot(context) if acc.allocation is not None else None
    node = dtype_argument(made) if made is not None else None
    if made is None or node is None or not isinstance(made.node, ast.Call):
        return
    for dtype in allowed:
        edits = Editor(made.path, made.syntax)
        text = dtype_text(edits, node, dtype)
        if text is None:
            continue
        edits.replace(node, text)
        packed = next((k for k in made.node.keywords if k.arg == "packed"), None)
        if packed is not None and dtype.endswith("32"):
            edits.remove_argument(made.node, packed)
        fix = suggested(f"Accumulate in {dtype}", edits)
        if fix is not None:
            yield fix


def _sizes(context: Context, mma: Mma, names: dict[str, str]) -> _Wrong | None:
    if not mma.two_dimensional:
        return None
    m, n, _, k, _, _ = mma.mnk
    made = mma.acc.allocation
    spot = made.spot(context) if made is not None and made.shape == mma.acc.shape else None
    if m not in (64, 128, 256):
        text = f"{names['acc']} has {m} rows, but the tensor core computes 128 or 64 (256 for two blocks together)."
        return _Wrong("acc", text, list(resized(spot, 0, m, 128, "the rows of the product")))
    if n % 8 or n > 512 or 256 < n < 512:
        new = 512 if n > 256 else multiple(n, 8)
        text = f"{names['acc']} has {n} columns, but the tensor core computes a multiple of 8 up to 256, or 512."
        return _Wrong("acc", text, list(resized(spot, 1, n, new, "the columns of the product")))
    if mma.a.bits and k % (256 // mma.a.bits):
        depth = 256 // mma.a.bits
        text = f"{names['a']} has {k} columns of {mma.a.dtype}, but k has to be a multiple of {depth} (32 bytes)."
        return _Wrong("a", text)
    return None


def _other(fault: Fault) -> _Wrong | None:
    """What only jax's own words tell: scales, sparsity, layouts of the accumulator."""
    site = fault.site
    if site is None or site.file != f"{MGPU}tcgen05.py" or site.function not in ("mma", "_do_mma"):
        return None
    message = fault.message
    if "layout mismatch" in message and message.startswith("Accumulator"):
        text = (
            "The accumulator does not lie in TMEM as the product is written: one of 16 bits is allocated with "
            "`packed=False`, and one without a layout of its own lies as the tensor core writes it."
        )
        return _Wrong("acc", text)
    if "Swizzle" in message and "M=64" in message:
        return _Wrong(
            "b", "The swizzle of `b` is too wide for products of 64 rows: use a smaller one, such as 64 bytes."
        )
    told = clean(message)
    return _Wrong("", f"The tensor core does not have this product: {told}") if told else None
