"""
## What it does
Finds operands of `plgpu.wgmma` and `plgpu.tcgen05_mma` in SMEM without the tiling and swizzle that the matrix units
read, or with a pair that does not fit together.

## Why it is wrong
The matrix units read SMEM in tiles of 8 rows whose width is the swizzle: 128, 64 or 32 bytes. An allocation says so
with `transforms=(plgpu.TilingTransform((8, width)), plgpu.SwizzleTransform(swizzle))`, the width in elements:
`swizzle * 8 / bits of an element`. Both operands need the same swizzle. From jax 0.11 the transforms of an allocation
without any are inferred (with warpgroup semantics, the default there); those that are given have to be right.

## Example
```python
a_smem = plgpu.SMEM((64, 64), jnp.float16)
```

## Use instead
```python
a_smem = plgpu.SMEM(
    (64, 64), jnp.float16, transforms=(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
)
```

## Fix safety
The fix changes how the operands lie in shared memory, not their values; it is a suggestion, because code that reads
them in another way may rely on the order.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_wgmma_lowering` and `_tcgen05_mma_lowering` in `jax/_src/pallas/mosaic_gpu/primitives.py`; `create_descriptor` and
`tiled_memref_shape` in `jax/experimental/mosaic/gpu/mma_utils.py`; layout inference.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_mma import mma_of, swizzle_for, tiled, with_transforms
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, Operand, place, quoted

SINCE = "0.1.0"
CONSTRUCTS = ("wgmma", "SMEM and TMEM")
SPECIFICITY = 47
SITES = (
    (PRIMITIVES, "_wgmma_lowering"),
    (PRIMITIVES, "_wgmma_warpgroup_lowering"),
    (PRIMITIVES, "_tcgen05_mma_lowering"),
    (PRIMITIVES, "_tcgen05_mma_lowering_wg"),
    (f"{MGPU}mma_utils.py", "create_descriptor"),
    (f"{MGPU}mma_utils.py", "tiled_memref_shape"),
    (f"{MGPU}dialect_lowering.py", "_mgpu_wgmma_op_lowering_rule"),
    (f"{MGPU}layout_inference.py", "mma_tiling_constraint"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    mma = mma_of(fault, "wgmma", "tcgen05_mma")
    if mma is None or not mma.two_dimensional or fault.stage != "lower":
        return None
    refs = [o for o in (mma.a, mma.b) if o.space == "smem" and o.allocation is not None]
    wrong = [o for o in refs if not tiled(o)]
    given = [o for o in wrong if o.allocation is not None and (o.allocation.tiling or o.allocation.swizzle)]
    inferred = bool(fault.facts.get("conflict")) or "layout_inference" in (fault.site.file if fault.site else "")
    if inferred:
        wrong = given  # what has no transforms gets them inferred
    what = "wgmma" if fault.equation and "wgmma" in fault.equation.primitive else "tcgen05_mma"
    if not wrong:
        return _mismatch(fault, context, refs, what)
    swizzle = _swizzle(refs, wrong)
    name = quoted(context, fault, wrong[0].name, wrong[0].name)
    related = [r for o in wrong for r in o.related(context, f"{_text(context, fault, o)} is allocated here.")]
    fixes = [with_transforms(context, wrong, swizzle)]
    if len(wrong) < len(refs) and swizzle != swizzle_for(*refs):
        fixes.append(with_transforms(context, refs, swizzle_for(*refs)))
    text = f"{name} {_problem(wrong[0])}, but `{what}` reads {_wanted(wrong[0], swizzle)}."
    if len(wrong) == 2:
        text = text.removesuffix(".") + f"; so does {quoted(context, fault, wrong[1].name, wrong[1].name)}."
    return finding(__name__, fault, context, place(context, fault, wrong[0].name), text, related, fixes)


def _mismatch(fault: Fault, context: Context, refs: list[Operand], what: str) -> Finding | None:
    swizzles = [o.allocation.swizzle for o in refs if o.allocation is not None]
    if (
        len(set(swizzles)) < 2
        or None in swizzles
        or (
            what == "tcgen05_mma"
            and "layout_inference" not in str(fault.site)
            and "_tcgen05_mma_lowering" not in str(fault.site)
        )
    ):
        return None
    a, b = refs
    lhs, rhs = (_text(context, fault, o) for o in refs)
    text = (
        f"{rhs} is swizzled by {swizzles[1]} bytes and {lhs} by {swizzles[0]}, but `{what}` needs the same swizzle "
        "for both."
    )
    related = [r for o in refs for r in o.related(context, f"{_text(context, fault, o)} is allocated here.")]
    both = swizzle_for(a, b)
    fixes = [
        with_transforms(context, [o], s)
        for o, s in ((b, swizzles[0]), (a, swizzles[1]))
        if s is not None and o.shape and o.shape[-1] % (s * 8 // o.bits) == 0
    ]
    if both not in swizzles:
        fixes.append(with_transforms(context, refs, both))
    return finding(__name__, fault, context, place(context, fault, "b"), text, related, fixes)


def _swizzle(refs: list[Operand], wrong: list[Operand]) -> int | None:
    """The swizzle of the operand that is right, where there is one; else the largest that fits both."""
    for ref in refs:
        if ref not in wrong and ref.allocation is not None and ref.allocation.swizzle is not None:
            return ref.allocation.swizzle
    return swizzle_for(*refs)


def _text(context: Context, fault: Fault, operand: Operand) -> str:
    return quoted(context, fault, operand.name, operand.name)


def _problem(operand: Operand) -> str:
    made = operand.allocation
    if made is None or (made.tiling is None and made.swizzle is None):
        return "has no tiling and no swizzle in SMEM"
    if made.tiling is None:
        return f"has a swizzle of {made.swizzle} bytes and no tiling"
    if made.swizzle is None:
        return f"is tiled by {made.tiling} and not swizzled"
    return f"is tiled by {made.tiling} with a swizzle of {made.swizzle} bytes"


def _wanted(operand: Operand, swizzle: int | None) -> str:
    if swizzle is None or not operand.bits:
        return "tiles of (8, swizzle bytes)"
    tile = swizzle * 8 // operand.bits
    return f"{operand.dtype} operands in tiles of (8, {tile}) with a swizzle of {swizzle} bytes"
