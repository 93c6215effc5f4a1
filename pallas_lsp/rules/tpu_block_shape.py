"""
## What it does
Finds blocks of a TPU kernel whose shape does not fit the tiles of the hardware: the last dimension has to be a multiple
of 128 or the array's whole dimension, the second-last a multiple of 8 or the whole dimension. It also finds blocks of
arrays that stay in HBM (`memory_space=pl.ANY`), and blocks of scalars.

## Why it is wrong
VMEM is organised in tiles of 8 sublanes by 128 lanes, and blocks are copied tile by tile. Any other block would start
or end inside a tile. A squeezed dimension (`None`) counts as a block of 1. A 1-D block has to be the whole array, a
multiple of 1024, or a power of two that fills at least one row of lanes. Arrays in HBM are not copied at all, so that
only the whole array makes sense as their block.

## Example
```python
pl.BlockSpec((64, 64), lambda i, j: (i, j))  # of an array (256, 512)
```

## Use instead
```python
pl.BlockSpec((64, 128), lambda i, j: (i, j))  # with a grid of (4, 4)
```

or the whole dimension: `pl.BlockSpec((64, 512), lambda i: (i, 0))`.

## Fix safety
Another block size is suggested, not safe: the kernel is called with larger blocks and fewer times, which is the same
for element-wise kernels. The fix changes every spec that shares the grid axis, and the grid. Moving a blocked array
from HBM to VMEM is suggested too.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`_check_block_mappings` in `jax/_src/pallas/mosaic/lowering.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared import block_sizes, keyword_edits, operand_refs, site_table
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.wording import shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "block specs and index maps")
SITES = (("jax/_src/pallas/mosaic/lowering.py", "_check_block_mappings"),)

_LANES, _SUBLANES = 128, 8
_BITS = {"bool": 32}


def judge(fault: Fault, context: Context) -> Finding | None:
    refused = fault.facts.get("refused")
    if not raised_in(fault, *SITES[0]) or not isinstance(refused, Mapping):
        return None
    role, index = str(refused.get("role", "inputs")), int(refused.get("index", 0))
    block = block_sizes.block_of(fault, context, role, index)
    if "rank >= 1" in fault.message:
        message, fixes = _scalar(fault, context, refused, block)
    elif "memory space ANY" in fault.message:
        message, fixes = _in_hbm(fault, context, refused, block)
    else:
        message, fixes = _tiles(fault, context, refused)
    place = _place(fault, context, block, role, index)
    return site_table.make(
        rule_name(__name__),
        fault,
        context,
        place,
        message,
        fixes=fixes,
        related=_related(fault, context, refused, role, index),
    )


def _place(fault: Fault, context: Context, block: block_sizes.Block | None, role: str, index: int) -> Location:
    """The block shape, else the spec, else the operand, else the launch."""
    if block is not None:
        given = block.argument("block_shape")
        return given.location if given is not None else block.spot.location
    capture = context.capture(fault)
    in_library = capture is not None and capture.launch is not None and capture.launch.origin == "library"
    operand = _operand(fault, context, role, index) if not in_library else None
    return operand.location if operand is not None else context.locate(fault)


def _operand(fault: Fault, context: Context, role: str, index: int) -> Spot | None:
    launch = launch_of(fault, context)
    if launch is None:
        return None
    if role == "outputs":
        return launch.part(f"[{index}]", launch.output) or launch.argument(launch.output)
    operands = launch.operands()
    prefetched = int((fault.facts.get("given") or {}).get("prefetched", 0))
    return operands[index + prefetched] if index + prefetched < len(operands) else None


def _related(fault: Fault, context: Context, refused: Mapping[str, Any], role: str, index: int) -> tuple[Related, ...]:
    operand = _operand(fault, context, role, index)
    if operand is None or block_sizes.block_of(fault, context, role, index) is None:
        return ()
    return (Related(operand.location, f"This array has the shape {shape_text(refused.get('array_shape'))}."),)


def _what(fault: Fault, context: Context, refused: Mapping[str, Any]) -> str:
    role, index = str(refused.get("role", "inputs")), int(refused.get("index", 0))
    given = fault.facts.get("given") or {}
    outputs = len(given.get("outputs") or ())
    name = "the output" if role == "outputs" and outputs < 2 else f"{role.removesuffix('s')} {index}"
    operand = _operand(fault, context, role, index) if role == "inputs" else None
    return f"{name} (`{short(operand.source, 30)}`)" if operand is not None else name


def _type(refused: Mapping[str, Any]) -> str:
    return operand_refs.notation(str(refused.get("dtype")), refused.get("array_shape") or ())


def _tiles(fault: Fault, context: Context, refused: Mapping[str, Any]) -> tuple[str, list[Fix]]:
    shape = list(refused.get("block_shape") or ())
    array = list(refused.get("array_shape") or ())
    what = f"The block {block_sizes.described(shape)} of {_what(fault, context, refused)}, {_type(refused)}, "
    if len(shape) == 1:
        sizes = _vector_sizes(array, refused)
        return what + _vector(array, refused), _resizes(fault, context, refused, 0, sizes)
    parts, fixes = [], []
    for dimension, unit, name in ((-1, _LANES, "last"), (-2, _SUBLANES, "second-last")):
        size, whole = shape[dimension], array[dimension]
        number = size if isinstance(size, int) else 1
        if number == whole or number % unit == 0:
            continue
        kind = f"{number}" if isinstance(size, int) else "squeezed, which counts as 1,"
        parts.append(f"its {name} dimension is {kind} and neither a multiple of {unit} nor the array's {whole}")
        if isinstance(size, int) and isinstance(whole, int):
            fixes += _resizes(fault, context, refused, dimension, _sizes(size, whole, unit))
    message = f"{what}does not fit the tiles of a TPU: {'; '.join(parts)}."
    return message, fixes if len(parts) == 1 else []


def _sizes(old: int, whole: int, unit: int) -> list[int]:
    """Better sizes of a dimension: the next multiple of the unit, if it can the next that divides the array."""
    first = (old + unit - 1) // unit * unit
    dividing = [size for size in range(first, min(whole, 16 * first) + 1, unit) if whole % size == 0]
    found = [*dividing[:1], *([first] if first <= whole else []), whole]
    return list(dict.fromkeys(found))[:2]


def _vector(array: list[Any], refused: Mapping[str, Any]) -> str:
    return (
        f"does not fit the tiles of a TPU: a 1-D block has to be the whole array ({array[0]}), a multiple of "
        f"{_LANES * _SUBLANES}, or a power of two of at least {_packed(refused)}."
    )


def _packed(refused: Mapping[str, Any]) -> int:
    name = str(refused.get("dtype"))
    bits = _BITS.get(name) or int("".join(c for c in name if c.isdigit())[:2] or 32)
    return _LANES * max(1, 32 // bits)


def _vector_sizes(array: list[Any], refused: Mapping[str, Any]) -> list[int]:
    old, whole = refused["block_shape"][0], array[0]
    if not isinstance(old, int) or not isinstance(whole, int):
        return []
    size = _packed(refused)
    while size < old:
        size *= 2
    return [s for s in dict.fromkeys((size, whole)) if s <= whole]


def _resizes(fault: Fault, context: Context, refused: Mapping[str, Any], dimension: int, sizes: list[int]) -> list[Fix]:
    old = refused["block_shape"][dimension]
    if not isinstance(old, int):
        return []
    role, index = str(refused.get("role")), int(refused.get("index", 0))
    found = [block_sizes.resized(fault, context, role, index, dimension, old, size) for size in sizes if size != old]
    return [fix for fix in found if fix is not None][:2]


_VMEM = "jax.experimental.pallas.tpu.VMEM"
_SMEM = "jax.experimental.pallas.tpu.SMEM"


def _in_hbm(
    fault: Fault, context: Context, refused: Mapping[str, Any], block: block_sizes.Block | None
) -> tuple[str, list[Fix]]:
    what = _what(fault, context, refused)
    message = (
        f"{what[0].upper()}{what[1:]} stays in HBM (memory space {refused.get('memory_space')}), so its block has "
        f"to be the whole array {shape_text(refused.get('array_shape'))}, not "
        f"{block_sizes.described(list(refused.get('block_shape') or ()))}: leave out `memory_space` to have blocks "
        "copied to VMEM, or leave out the block and copy parts with `pltpu.async_copy`."
    )
    if block is None:
        return message, []
    return message, list(
        keyword_edits.remove_keyword(block.spot, "memory_space", "Have the blocks copied to VMEM (no `memory_space`)")
    )


def _scalar(
    fault: Fault, context: Context, refused: Mapping[str, Any], block: block_sizes.Block | None
) -> tuple[str, list[Fix]]:
    what = _what(fault, context, refused)
    message = (
        f"{what[0].upper()}{what[1:]} is a scalar ({_type(refused)}), and a TPU block needs at least "
        "one dimension: give it `pl.BlockSpec(memory_space=pltpu.SMEM)`, or make it an array of shape (1, 1)."
    )
    if block is None:
        return message, []
    space = block.spot.syntax.spelled(_SMEM, block.call)
    if space is None:
        return message, []
    return message, list(keyword_edits.set_keyword(block.spot, "memory_space", space, "Keep the scalar in SMEM"))
