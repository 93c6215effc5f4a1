"""
## What it does
Finds copies from SMEM to TMEM (`plgpu.async_copy_smem_to_tmem`, `plgpu.async_copy_scales_to_tmem`,
`plgpu.async_copy_sparse_metadata_to_tmem`) between refs whose shapes, element types or layouts do not fit the copy.

## Why it is wrong
The tensor core reads scales and sparse metadata in an order of its own. The refs have to be allocated for it:

| copy | TMEM | SMEM |
|---|---|---|
| scales, 8-bit floats | (m, k) with m 128 or 256, k a multiple of 4, `SCALES_LAYOUT` | (m / 128, k / 4, 32, 16) |
| metadata, uint2 | (128, k) with k a multiple of 64, `SPARSE_METADATA_LAYOUT` | (1, k / 64, 128, 64) |
| anything else | 128 rows, packed where the type has less than 32 bits | the same shape, tiled by (8, swizzle) |

## Example
```python
scratch_types=[
    plgpu.SMEM((128, 4), jnp.float8_e8m0fnu),
    plgpu.TMEM((128, 4), jnp.float8_e8m0fnu, layout=plgpu.TMEMLayout.SCALES_LAYOUT),
]
plgpu.async_copy_scales_to_tmem(scales_smem, scales_tmem)
```

## Use instead
```python
plgpu.SMEM((1, 1, 32, 16), jnp.float8_e8m0fnu)
```

## Fix safety
Another shape, type or layout of an allocation is suggested: what is copied into it may have to change too.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`async_copy_scales_smem_to_tmem`, `async_copy_sparse_metadata_smem_to_tmem` and `async_copy_smem_to_tmem` in
`jax/experimental/mosaic/gpu/tcgen05.py`, the verifiers of the operations that they lower, and
`_async_store_smem_to_tmem_constraint_system` in `jax/experimental/mosaic/gpu/layout_inference.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.model import Fault, Finding, Fix, Location
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import dtype_argument, dtype_text, set_keyword
from pallas_lsp.rules.shared.gpu_operands import (
    CORE,
    MGPU,
    PLGPU,
    PRIMITIVES,
    VERIFIER,
    Operand,
    call_spot,
    called,
    operands,
    place,
    shape_text,
)
from pallas_lsp.rules.shared.gpu_sizes import shape_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("tcgen05", "copies", "SMEM and TMEM")
SPECIFICITY = 66
_TCGEN05 = f"{MGPU}tcgen05.py"
_INFERENCE = f"{MGPU}layout_inference.py"
_COPIES = ("async_copy_scales_to_tmem", "async_copy_sparse_metadata_to_tmem", "async_copy_smem_to_tmem")
SITES = (
    (_TCGEN05, "async_copy_scales_smem_to_tmem"),
    (_TCGEN05, "async_copy_sparse_metadata_smem_to_tmem"),
    (_TCGEN05, "async_copy_smem_to_tmem"),
    (_INFERENCE, "_async_store_smem_to_tmem_constraint_system"),
    (_INFERENCE, "infer_layout"),
    (PRIMITIVES, "_async_copy_smem_to_tmem_lowering_rule"),
    (PRIMITIVES, "_async_copy_smem_to_tmem_abstract_eval", "to equal the TMEM"),
    (f"{MGPU}core.py", VERIFIER),
)
_SCALES = ("float8_e8m0fnu", "float8_e4m3fn")


@dataclass(frozen=True)
class _Wrong:
    """One thing that does not fit: what is said, of which ref, and how the allocation would have to be."""

    text: str
    of: Operand
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    keyword: tuple[str, str] | None = None


def judge(fault: Fault, context: Context) -> Finding | None:
    if not any(raised_in(fault, *site[:2]) for site in SITES) and not raised_in(fault, CORE, VERIFIER):
        return None
    call = call_spot(context, fault, *_COPIES)
    refs = list(operands(fault).values())
    if call is None or not isinstance(call.node, ast.Call) or len(refs) < 2:
        return None
    smem, tmem = refs[:2]
    if (smem.space, tmem.space) != ("smem", "tmem"):
        return None
    name = called(call.syntax, call.node)
    checks = {_COPIES[0]: _scales, _COPIES[1]: _metadata, _COPIES[2]: _plain}
    wrong = next(checks[name](smem, tmem, _layout(tmem, context)), None)
    if wrong is None and name == _COPIES[2] and _unpacked(tmem, context):
        text = (
            f"A copy into TMEM packs elements of {tmem.bits} bits, {32 // tmem.bits} to a column: the ref needs "
            "`packed=True`."
        )
        wrong = _Wrong(text, tmem, keyword=("packed", "True"))
    if wrong is None:
        return None
    other = tmem if wrong.of is smem else smem
    return finding(
        __name__,
        fault,
        context,
        _place(fault, context, wrong.of is smem, call),
        wrong.text,
        [*wrong.of.related(context, "It is allocated here."), *other.related(context, "The other ref.")],
        [fix for fix in _fixes(wrong, context) if fix is not None],
    )


def _place(fault: Fault, context: Context, source: bool, call: Spot) -> Location:
    assert isinstance(call.node, ast.Call)
    given = call.syntax.arguments(call.node).get(0 if source else 1, "smem_ref" if source else "tmem_ref")
    return call.at(given).location if given is not None else place(context, fault)


def _layout(tmem: Operand, context: Context) -> str | None:
    """The name of the layout that a TMEM allocation was given, "" for none, None where that is not known."""
    made = tmem.allocation.spot(context) if tmem.allocation is not None else None
    if made is None or not isinstance(made.node, ast.Call):
        return None
    given = next((k.value for k in made.node.keywords if k.arg == "layout"), None)
    if given is None:
        return ""
    node = made.syntax.value(given)
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else None


def _unpacked(tmem: Operand, context: Context) -> bool:
    """Whether a TMEM allocation of narrow elements says that they are not packed."""
    made = tmem.allocation.spot(context) if tmem.allocation is not None else None
    call = made.node if made is not None else None
    given = next((k.value for k in call.keywords if k.arg == "packed"), None) if isinstance(call, ast.Call) else None
    return 0 < tmem.bits < 32 and isinstance(given, ast.Constant) and given.value is False


def _scales(smem: Operand, tmem: Operand, layout: str | None) -> Iterator[_Wrong]:
    yield from _types(smem, tmem, _SCALES, "scales")
    rows, columns = tmem.shape or (0, 0)
    if rows % 128 or columns % 4 or rows > 256:
        why = "rows are 128 or 256" if rows % 128 or rows > 256 else "columns are a multiple of 4"
        yield _Wrong(f"Scales in TMEM are (m, k / block): their {why}, but this ref is {shape_text(tmem.shape)}.", tmem)
    if layout is not None and layout not in ("SCALES_LAYOUT", "B_SCALES_M64_COLLECTIVE_LAYOUT"):
        yield _needs_layout(tmem, layout, "SCALES_LAYOUT", "scales")
    if layout == "B_SCALES_M64_COLLECTIVE_LAYOUT":
        yield from _shape(smem, tmem, (1, columns // 4, 64, 16), "(1, k / 4, 64, 16)")
    elif layout is not None:
        yield from _shape(smem, tmem, (rows // 128, columns // 4, 32, 16), "(m / 128, k / 4, 32, 16)")


def _metadata(smem: Operand, tmem: Operand, layout: str | None) -> Iterator[_Wrong]:
    yield from _types(smem, tmem, ("uint2",), "sparse metadata")
    rows, columns = tmem.shape or (0, 0)
    if rows != 128 or columns % 64:
        text = f"Sparse metadata in TMEM has 128 rows and a multiple of 64 columns, not {shape_text(tmem.shape)}."
        yield _Wrong(text, tmem)
    if layout is not None and layout != "SPARSE_METADATA_LAYOUT":
        yield _needs_layout(tmem, layout, "SPARSE_METADATA_LAYOUT", "sparse metadata")
    yield from _shape(smem, tmem, (1, columns // 64, 128, 64), "(1, k / 64, 128, 64)")


def _plain(smem: Operand, tmem: Operand, layout: str | None) -> Iterator[_Wrong]:
    made = smem.allocation
    shape = made.shape if made is not None and not smem.view and not smem.slices else None
    if smem.dtype != tmem.dtype:
        text = f"This copies {smem.dtype} into {tmem.dtype}, but a copy does not convert."
        yield _Wrong(text, smem, dtype=tmem.dtype)
    if shape is not None and shape != tmem.shape:
        text = f"This copies {shape_text(shape)} into {shape_text(tmem.shape)}: both refs have the same shape."
        yield _Wrong(text, smem, shape=tmem.shape)
    if tmem.shape is not None and tmem.shape[0] != 128:
        yield _Wrong(f"A copy into TMEM fills all of its 128 rows, but this ref has {tmem.shape[0]}.", tmem)
    if layout is not None and layout != "":
        text = f"A copy into TMEM fills its usual layout, but this ref has `{layout}`: leave the layout out."
        yield _Wrong(text, tmem, keyword=("layout", ""))
    if made is not None and not made.swizzle:
        text = "A copy into TMEM reads tiles of (8, swizzle) from SMEM, but this ref has no tiling and swizzle."
        yield _Wrong(text, smem)


def _types(smem: Operand, tmem: Operand, wanted: tuple[str, ...], what: str) -> Iterator[_Wrong]:
    for ref in (tmem, smem):
        if ref.dtype not in wanted:
            yield _Wrong(f"This copies {what}, which are {' or '.join(wanted)}, but the ref is {ref.dtype}.", ref)
    if smem.dtype != tmem.dtype:
        text = f"This copies {smem.dtype} into {tmem.dtype}, but a copy does not convert."
        yield _Wrong(text, smem, dtype=tmem.dtype)


def _needs_layout(tmem: Operand, layout: str, wanted: str, what: str) -> _Wrong:
    has = f"has `{layout}`" if layout else "has none"
    text = f"The tensor core reads {what} in the layout `plgpu.TMEMLayout.{wanted}`, but this ref {has}."
    return _Wrong(text, tmem, keyword=("layout", f"TMEMLayout.{wanted}"))


def _shape(smem: Operand, tmem: Operand, wanted: tuple[int, ...], how: str) -> Iterator[_Wrong]:
    if smem.shape != wanted:
        text = (
            f"To fill TMEM of {shape_text(tmem.shape)}, the ref in SMEM has to be {how} = {shape_text(wanted)}, but it "
            f"is {shape_text(smem.shape)}."
        )
        yield _Wrong(text, smem, shape=wanted)


def _fixes(wrong: _Wrong, context: Context) -> Iterator[Fix | None]:
    made = wrong.of.allocation.spot(context) if wrong.of.allocation is not None else None
    if made is None or not isinstance(made.node, ast.Call) or wrong.of.view or wrong.of.slices:
        return
    editor = Editor(made.path, made.syntax)
    if wrong.shape is not None:
        shape = shape_of(made)
        if shape is not None:
            editor.replace(shape, shape_text(wrong.shape))
            yield suggested(f"Allocate {shape_text(wrong.shape)}", editor)
    elif wrong.dtype:
        given, text = dtype_argument(made), dtype_text(editor, made.node, wrong.dtype)
        if given is not None and text is not None:
            editor.replace(given, text)
            yield suggested(f"Allocate {wrong.dtype}", editor)
    elif wrong.keyword is not None:
        yield _keyword(editor, made.node, *wrong.keyword)


def _keyword(editor: Editor, call: ast.Call, name: str, value: str) -> Fix | None:
    if not value:
        given = next((k for k in call.keywords if k.arg == name), None)
        if given is None:
            return None
        editor.remove_argument(call, given)
        return suggested(f"Leave `{name}` out", editor)
    text: str | None = value
    if name == "layout":
        base = editor.spell(f"{PLGPU}.TMEMLayout", call, (PLGPU, "plgpu"))
        text = f"{base}.{value.rpartition('.')[2]}" if base is not None else None
        packed = next((k for k in call.keywords if k.arg == "packed"), None)
        if packed is not None:
            editor.remove_argument(call, packed)
    if text is None:
        return None
    set_keyword(editor, call, name, text)
    return suggested(f"Allocate it with `{name}={value}`", editor)
