"""
## What it does
Finds tilings and swizzles that do not fit the ref that they are given for: tiles that do not divide its shape, a
swizzle that is no row of a tile, a swizzle before the tiling, a swizzle other than 32, 64 and 128.

## Why it is wrong
`transforms=(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))` says how a ref lies in shared memory: in
tiles of 8 rows and 64 columns, one after the other, and with the 16-byte pieces of each row swapped. The tiles have
to divide the last dimensions of the ref. A swizzle of 128 needs rows of exactly 128 bytes, which is what the tiling
before it makes: 64 elements of 16 bits, 32 of 32 bits, 128 of 8 bits.

## Example
```python
plgpu.SMEM((60, 128), jnp.float16, transforms=(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128)))
plgpu.SMEM((64, 128), jnp.float32, transforms=(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128)))
```

## Use instead
```python
plgpu.SMEM((64, 128), jnp.float16, transforms=(plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128)))
plgpu.SMEM((64, 128), jnp.float32, transforms=(plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128)))
```

## Fix safety
Tiles that fit the element type change only how the values lie in shared memory; another shape changes the block. All
fixes are suggestions.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`TilingTransform.transform_type`, `SwizzleTransform.transform_type` and `SwizzleTransform.__post_init__` in
`jax/_src/pallas/mosaic_gpu/core.py`; the verifier of `mosaic_gpu.reinterpret_cast`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import set_keyword, transforms_text
from pallas_lsp.rules.shared.gpu_operands import (
    CORE,
    MGPU,
    VERIFIER,
    Allocation,
    allocation,
    bits,
    operands,
    shape_text,
)
from pallas_lsp.rules.shared.gpu_pipelines import pipeline_of
from pallas_lsp.rules.shared.gpu_sizes import multiple, resized
from pallas_lsp.rules.shared.launches import born
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM", "refs")
SITES = (
    (CORE, "TilingTransform.transform_type"),
    (CORE, "SwizzleTransform.transform_type"),
    (CORE, "SwizzleTransform.__post_init__"),
    (f"{MGPU}constraints.py", "SMEMTransforms.__post_init__"),
    (f"{MGPU}launch_context.py", "TileTransform.apply"),
    (f"{MGPU}launch_context.py", "TileTransform.transform_gmem_shape"),
    (f"{MGPU}launch_context.py", "TransposeTransform.transform_shape.<locals>.<genexpr>"),
    (f"{MGPU}core.py", VERIFIER),
)
_SWIZZLES = (128, 64, 32)


def judge(fault: Fault, context: Context) -> Finding | None:
    if raised_in(fault, CORE, "__post_init__") and "wizzle" in fault.message:
        return _swizzle(fault, context)
    made = _made(fault)
    typed = raised_in(fault, CORE, "transform_type")
    if made is None or not (typed or _tile_rank(fault, made)):
        return None
    if not typed and made.tiling is not None and len(made.tiling) <= len(made.shape):
        return None
    block = _of_pipeline(fault, context, made)
    problem = _problem(made, "block" if block is not None else "ref")
    if problem is None:
        return None
    spot = block or made.spot(context) or _block_spec(fault, context)
    location = narrowed(spot.location, context) if spot is not None else context.locate(fault)
    return finding(
        __name__, fault, context, location, problem, _related(fault, context, location), _fixes(context, made)
    )


def _tile_rank(fault: Fault, made: Allocation) -> bool:
    """A ref with fewer dimensions than its tiles, which jax notices only where it is used."""
    if made.tiling is None or len(made.tiling) <= len(made.shape):
        return False
    return passed_through(fault, f"{MGPU}launch_context.py") or passed_through(fault, f"{MGPU}core.py", VERIFIER)


def _made(fault: Fault) -> Allocation | None:
    """The allocation whose type was being made, else the tiled one among the operands."""
    entry = fault.facts.get("allocating")
    if isinstance(entry, Mapping):
        return allocation(entry)
    tiled = [o.allocation for o in operands(fault).values() if o.allocation is not None and o.allocation.tiling]
    wrong = [a for a in tiled if a.tiling is not None and len(a.tiling) > len(a.shape)]
    return wrong[0] if wrong else None


def _problem(made: Allocation, kind: str) -> str | None:
    shape, tiling, swizzle = made.shape, made.tiling, made.swizzle
    element = bits(made.dtype)
    what = f"This {kind} is {shape_text(shape[1:] if kind == 'block' else shape)}"
    if tiling is not None:
        if len(tiling) > len(shape):
            dimensions = f"{len(shape)} dimension{'s' if len(shape) != 1 else ''}"
            return f"{what}, with {dimensions}, but its tiling {shape_text(tiling)} has {len(tiling)}."
        for size, tile in zip(shape[-len(tiling) :], tiling, strict=True):
            if size % tile:
                return (
                    f"{what}, but its tiles are {shape_text(tiling)}: {tile} does not divide {size}. Tiles have to "
                    "divide the last dimensions."
                )
    if swizzle is None or not element:
        return None
    row = swizzle * 8 // element
    names = made.facts.get("transforms") or ()
    if tiling is not None and list(names)[:1] == ["SwizzleTransform"]:
        return (
            f"The swizzle stands before the tiling: it needs rows of {row} elements ({swizzle} bytes), which only the "
            "tiling makes. The tiling comes first."
        )
    last = tiling[-1] if tiling is not None else shape[-1] if shape else 0
    if last != row:
        rows = f"its tiles have {last} columns" if tiling is not None else f"it has {last} columns and no tiling"
        return (
            f"A swizzle of {swizzle} bytes needs rows of {row} elements of {made.dtype}, but {rows}. Tile it by (8, "
            f"{row})."
        )
    return None


def _related(fault: Fault, context: Context, location: Location) -> list[Related]:
    found = []
    for entry in fault.facts.get("specs", ()):
        if isinstance(entry, Mapping) and entry.get("kind") in ("TilingTransform", "SwizzleTransform"):
            spot = born(context, entry.get("frames"))
            if spot is not None and spot.location.range.start.line != location.range.start.line:
                what = "tiling" if entry["kind"] == "TilingTransform" else "swizzle"
                found.append(Related(spot.location, f"The {what} is made here."))
    return found[:2]


def _of_pipeline(fault: Fault, context: Context, made: Allocation) -> Spot | None:
    """The spec of the pipeline whose blocks the ref holds: such a ref has one more dimension, the steps."""
    pipeline = pipeline_of(fault, context)
    for spec in pipeline.specs() if pipeline is not None else ():
        if not isinstance(spec.node, ast.Call) or not any(k.arg == "transforms" for k in spec.node.keywords):
            continue
        given = spec.syntax.arguments(spec.node).get(0, "block_shape")
        shape = spec.syntax.value(given) if given is not None else None
        sizes = [spec.syntax.value(e) for e in shape.elts] if isinstance(shape, ast.Tuple) else []
        if len(sizes) == len(made.shape) - 1 and all(
            not isinstance(size, ast.Constant) or size.value == known
            for size, known in zip(sizes, made.shape[1:], strict=True)
        ):
            return spec
    return None


def _block_spec(fault: Fault, context: Context) -> Spot | None:
    for entry in fault.facts.get("specs", ()):
        if isinstance(entry, Mapping) and entry.get("kind") == "BlockSpec":
            return born(context, entry.get("frames"))
    return None


def _fixes(context: Context, made: Allocation) -> Iterator[Fix | None]:
    spot = made.spot(context)
    element = bits(made.dtype)
    if spot is None or not isinstance(spot.node, ast.Call) or not made.shape or not element:
        return
    fitting = [s for s in _SWIZZLES if made.shape[-1] % (s * 8 // element) == 0]
    rows_fit = len(made.shape) > 1 and made.shape[-2] % 8 == 0
    if len(made.shape) == 1 or (not fitting and made.tiling is not None and len(made.tiling) > len(made.shape)):
        keyword = next((k for k in spot.node.keywords if k.arg == "transforms"), None)
        if keyword is not None:
            edits = Editor(spot.path, spot.syntax)
            edits.remove_argument(spot.node, keyword)
            yield suggested("Leave the transforms out", edits)
        return
    if fitting and rows_fit:
        wanted = made.swizzle if made.swizzle in fitting else fitting[0]
        assert wanted is not None
        edits = Editor(spot.path, spot.syntax)
        text = transforms_text(edits, spot.node, wanted, element)
        if text is not None:
            set_keyword(edits, spot.node, "transforms", text, position=2)
            tile = wanted * 8 // element
            yield suggested(f"Tile it by (8, {tile}) with a swizzle of {wanted} bytes", edits)
    if made.tiling is None:
        return
    first = len(made.shape) - len(made.tiling)
    for offset, tile in enumerate(made.tiling):
        size = made.shape[first + offset]
        if size % tile:
            yield from resized(spot, first + offset, size, multiple(size, tile), f"a multiple of the tile's {tile}")


def _swizzle(fault: Fault, context: Context) -> Finding:
    location = context.locate(fault)
    syntax, node = context.syntax(location.path), context.node(location)
    fixes: list[Fix | None] = []
    text = "A swizzle is 32, 64 or 128 bytes."
    if syntax is not None and isinstance(node, ast.Call):
        given = syntax.arguments(node).get(0, "swizzle")
        if given is not None and given in ast.walk(node):
            value = syntax.value(given)
            number = value.value if isinstance(value, ast.Constant) else None
            if isinstance(number, int):
                text = f"A swizzle is 32, 64 or 128 bytes, not {number}."
            location = Location(location.path, syntax.range(given))
            for swizzle in _swizzles(syntax, node):
                edits = Editor(location.path, syntax)
                edits.replace(given, str(swizzle))
                fixes.append(suggested(f"Swizzle by {swizzle} bytes", edits))
    return finding(__name__, fault, context, location, text, (), fixes)


def _swizzles(syntax: Syntax, node: ast.Call) -> tuple[int, ...]:
    """The swizzles that the rows of the tiling in the same tuple have, of elements of the allocation around it."""
    tiles = syntax.parent(node)
    made = next((p for p in syntax.ancestors(node) if isinstance(p, ast.Call)), None)
    given = syntax.arguments(made).get(1, "dtype") if made is not None else None
    element = bits((syntax.dotted(given) or "").rpartition(".")[2]) if given is not None else 0
    for other in tiles.elts if isinstance(tiles, ast.Tuple | ast.List) and element else ():
        tiling = syntax.arguments(other).get(0, "tiling") if isinstance(other, ast.Call) and other is not node else None
        last = tiling.elts[-1] if isinstance(tiling, ast.Tuple | ast.List) and tiling.elts else None
        if isinstance(last, ast.Constant) and isinstance(last.value, int):
            return tuple(s for s in _SWIZZLES if s * 8 // element == last.value) or _SWIZZLES
    return _SWIZZLES
