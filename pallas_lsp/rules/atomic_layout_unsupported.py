"""
## What it does
Finds atomic operations and operations on several devices' memory (`plgpu.atomic_add`, `plgpu.multimem_store`,
`plgpu.multimem_load_reduce` and their like) whose value has a layout, an element type or a reduction that the GPU
cannot do there.

## Why it is wrong
Each thread adds or stores its own elements, so that each element has to belong to one thread. A constant, or a value
that was spread along an axis, is held by several threads, each of which would add it again. A load that reduces over
devices moves 32, 64 or 128 bits and knows a few reductions for each type: `add` alone for float32; `add`, `min` and
`max` for the smaller floats; for integers of 32 and 64 bits also `and`, `or` and `xor`.

## Example
```python
plgpu.atomic_add(o_ref, jnp.ones((128, 128), jnp.float32))
```

## Use instead
```python
ones = plgpu.layout_cast(jnp.ones((128, 128), jnp.float32), plgpu.Layout.WG_STRIDED((128, 128), vec_size=1))
plgpu.atomic_add(o_ref, ones)
```

## Fix safety
A cast to a layout in which each element has one thread changes no value (suggested).

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`FragmentedArray.store_untiled`, `store_tiled` and `transfer_tiled` in
`jax/experimental/mosaic/gpu/fragmented_array.py`; `multimem_load_reduce` in `jax/experimental/mosaic/gpu/utils.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.gpu_operands import MGPU, PLGPU, PRIMITIVES
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("layouts", "primitives")
_ARRAY = f"{MGPU}fragmented_array.py"
_UTILS = f"{MGPU}utils.py"
_STORE = ("FragmentedArray.store_untiled", "FragmentedArray.store_tiled")


def _value(details: Details) -> Spot | None:
    """The value that is stored: the last positional argument, or the one that is named so."""
    call, spot = details.call, details.spot
    if call is None or spot is None:
        return None
    given = spot.syntax.arguments(call)
    for name in ("value", "x", "source"):
        if name in given.keywords:
            return spot.at(given.keywords[name])
    return spot.at(given.positional[-1]) if len(given.positional) > 1 else None


def _shape(details: Details) -> tuple[int, ...]:
    inputs = details.equation.inputs if details.equation is not None else ()
    shapes = [re.findall(r"\d+", i.partition("[")[2]) for i in inputs if "Ref" not in i and "[" in i]
    shapes = [s for s in shapes if s]
    return tuple(int(n) for n in shapes[-1]) if shapes else ()


def _cast(details: Details) -> Sequence[Fix]:
    spot, shape = _value(details), _shape(details)
    if spot is None or not shape:
        return ()
    editor = Editor(spot.path, spot.syntax)
    cast = editor.spell(f"{PLGPU}.layout_cast", spot.node, (PLGPU, "plgpu"))
    layout = editor.spell(f"{PLGPU}.Layout", spot.node, (PLGPU, "plgpu"))
    if cast is None or layout is None:
        return ()
    sizes = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    after = f", {layout}.WG_STRIDED({sizes}, vec_size=1))"
    return keyword_edits.wrap(spot, f"{cast}(", after, "Give each element one thread, with a layout cast")


def _reduction(details: Details) -> str:
    what = {
        "add is supported for f32": "float32 can only be added up",
        "add, min and max": "floats can be added up, or their minimum or maximum taken",
        "32-bit and 64-bit": "integers have to have 32 or 64 bits",
    }
    why = next(text for words, text in what.items() if words in details.fault.message)
    return f"`{details.source}` reduces over devices in a way that the GPU cannot: {why}."


_ROWS = (
    Row(
        _ARRAY,
        _STORE,
        "`{source}` works on a value that every thread holds as a whole (a constant), and each would apply it again: "
        "cast it to a layout in which each element has one thread.",
        "Atomic stores not supported for (?:splat|layouts with replicated)",
        at=_value,
        fixes=_cast,
    ),
    Row(
        _ARRAY,
        _STORE,
        "`{source}` stores a value that every thread holds as a whole (a constant) into the memory of several devices: "
        "cast it to a layout in which each element has one thread.",
        "Splat layout does not support multimem",
        at=_value,
        fixes=_cast,
    ),
    Row(
        _ARRAY,
        _STORE,
        "`{source}` stores into a swizzled ref a value whose layout has no tiles: cast it to a tiled layout, such as "
        "`plgpu.Layout.WGMMA`, or allocate the ref without a swizzle.",
        "Only TiledLayouts support swizzling",
    ),
    Row(
        _ARRAY,
        _STORE,
        "`{source}` stores elements of which a thread holds a part of a byte: convert to a type of whole bytes, or "
        "cast to a layout that gives each thread several neighbours.",
        "multiple of byte size",
    ),
    Row(
        _ARRAY,
        ("get_base_index",),
        "`{source}` works on a swizzled or deeply tiled ref, whose elements an atomic operation cannot address: use a "
        "ref without transforms.",
        "Base index computation|Tiling too complicated",
    ),
    Row(
        PRIMITIVES,
        ("_multimem_load_reduce_lowering_rule",),
        "Nothing tells how `{source}` is spread over the threads: cast it with `plgpu.layout_cast`.",
        "infer the output layout",
    ),
    Row(
        _UTILS,
        ("multimem_load_reduce",),
        "`{source}` gives each thread a number of bits that one load over several devices cannot fetch: 32, 64 or 128. "
        "Cast the result to a layout with another number of neighbours for each thread.",
        "Only 32-, 64- and 128-bit",
    ),
    Row(_UTILS, ("multimem_load_reduce",), _reduction, "Only add|Only 32-bit and 64-bit"),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
