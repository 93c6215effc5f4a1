"""
## What it does
Finds allocations of tensor memory (TMEM) of a shape or with options that it does not have, and options of TMEM given
for other memory.

## Why it is wrong
Blackwell's tensor memory has 128 rows (or 64) and up to 512 columns of 32 bits. A `plgpu.TMEM` ref has two dimensions
with 128 or 64 rows; elements narrower than 32 bits need `packed=True` or `packed=False` (several in a column, or one)
or a layout; it has no transforms. `packed`, `collective` and `layout` belong to TMEM alone. One kernel cannot mix
collective and other TMEM.

## Example
```python
plgpu.TMEM((96, 128), jnp.float32)
plgpu.TMEM((128, 128), jnp.bfloat16)
```

## Use instead
```python
plgpu.TMEM((128, 128), jnp.float32)
plgpu.TMEM((128, 128), jnp.bfloat16, packed=True)    # an operand; an accumulator: packed=False
```

## Fix safety
All fixes are suggestions.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`MemorySpace.__call__` in `jax/_src/pallas/mosaic_gpu/core.py`; `_infer_tmem_layout`, `tmem_default_layout`,
`tmem_half_lane_layout`, `tmem_m64_collective_layout` and `TMEMLayout.check_type` in
`jax/experimental/mosaic/gpu/tcgen05.py`; `_run_scoped_resource_estimator` and `lower_jaxpr_to_module` in
`jax/_src/pallas/mosaic_gpu/lowering.py`; `_launch` in `jax/experimental/mosaic/gpu/core.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import set_keyword
from pallas_lsp.rules.shared.gpu_operands import CORE, LOWERING, MGPU, called
from pallas_lsp.rules.shared.gpu_sizes import dimension, resized, shape_of
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM",)
_TCGEN05 = f"{MGPU}tcgen05.py"
SITES = (
    (CORE, "MemorySpace.__call__"),
    (_TCGEN05, "_infer_tmem_layout"),
    (_TCGEN05, "tmem_default_layout"),
    (_TCGEN05, "tmem_half_lane_layout"),
    (_TCGEN05, "tmem_m64_collective_layout"),
    (_TCGEN05, "fa_m64_collective_layout"),
    (_TCGEN05, "TMEMLayout.check_type"),
    (_TCGEN05, "TMEMRef.from_alloc"),
    (LOWERING, "_run_scoped_resource_estimator"),
    (LOWERING, "lower_jaxpr_to_module"),
    (f"{MGPU}core.py", "_launch"),
)
_ROWS = re.compile(r"Unsupported shape: \((?P<rows>\d+),")
_SPACES = ("TMEM", "SMEM", "GMEM")


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None or ((site.file, site.function) not in SITES and site.file not in (CORE, _TCGEN05)):
        return None
    if site.file == CORE and not site.function.endswith("__call__"):
        return None
    if site.file == _TCGEN05 and site.function.rpartition(".")[2] not in {f.rpartition(".")[2] for _, f in SITES}:
        return None
    spot = _allocation(context, fault) or _collective(context, fault)
    told = _told(fault, spot)
    if told is None:
        return None
    text, at = told
    place = narrowed(context.locate(fault), context)
    if spot is not None:
        place = narrowed(spot.location, context)
        node = _part(spot, at)
        if node is not None:
            place = spot.at(node).location
    return finding(__name__, fault, context, place, text, (), _fixes(fault, spot))


def _allocation(context: Context, fault: Fault) -> Spot | None:
    location = context.locate(fault)
    syntax, node = context.syntax(location.path), context.node(location)
    if syntax is None or node is None:
        return None
    for inner in [node, *syntax.ancestors(node)]:
        if isinstance(inner, ast.Call) and called(syntax, inner) in _SPACES:
            return Spot(location.path, syntax, inner)
        if isinstance(inner, ast.stmt):
            break
    return None


def _collective(context: Context, fault: Fault) -> Spot | None:
    """The allocation of the launch that asks for collective TMEM, where jax complains of the launch as a whole."""
    launch = launch_of(fault, context)
    if launch is None or not ("mix collective" in fault.message or "even number of blocks" in fault.message):
        return None
    trees: list[tuple[str, Syntax, ast.AST]] = [(launch.spot.path, launch.syntax, launch.call)]
    scratch = launch.argument("scratch_types", "scratch_shapes")
    if scratch is not None:
        trees.append((scratch.path, scratch.syntax, scratch.syntax.value(scratch.node)))
    body = launch.body()
    if body is not None:
        trees.append(body)
    for path, syntax, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(syntax, node) == "TMEM":
                given = next((k.value for k in node.keywords if k.arg == "collective"), None)
                if given is not None and not (isinstance(given, ast.Constant) and given.value is False):
                    return Spot(path, syntax, node)
    return None


def _part(spot: Spot, at: str) -> ast.expr | None:
    if at == "rows":
        return dimension(spot, 0)
    if at == "shape":
        return shape_of(spot)
    if at and isinstance(spot.node, ast.Call):
        return next((k.value for k in spot.node.keywords if k.arg == at), None)
    return None


def _told(fault: Fault, spot: Spot | None) -> tuple[str, str] | None:
    """(message, which part of the allocation it concerns)."""
    message = fault.message
    if (match := _ROWS.search(message)) is not None:
        return f"A ref in TMEM has 128 or 64 rows, not {match['rows']}: a row is a lane of the tensor core.", "rows"
    if "only represent 2D" in message or "must be 2D" in message:
        return "A ref in TMEM has two dimensions: 128 or 64 rows, and columns.", "shape"
    if "transforms are not supported for TMEM" in message:
        return "A ref in TMEM has no tiling and no swizzle: it has a layout of its own.", "transforms"
    if "narrower than 32-bit" in message:
        text = (
            "Elements narrower than 32 bits have two ways to lie in TMEM, which has to be said: `packed=True` puts "
            "several into a 32-bit column, as for an operand of a product; `packed=False` one, as for an accumulator."
        )
        return text, ""
    if "packed cannot be specified" in message:
        return "`packed` and `layout` both say how the elements lie in TMEM: give one of them.", "packed"
    if "only supported for TMEM" in message:
        given = (
            [k.arg for k in spot.node.keywords if k.arg in ("packed", "collective", "layout")]
            if (spot is not None and isinstance(spot.node, ast.Call))
            else []
        )
        names = " and ".join(f"`{n}`" for n in given) or "`packed`, `collective` and `layout`"
        return f"{names} belongs to TMEM: other memory has no such thing.", str(given[0]) if given else ""
    if "mix collective" in message:
        text = (
            "This kernel allocates TMEM for one block and for a pair of blocks (`collective=True`): in one kernel all "
            "TMEM has to be of the same kind."
        )
        return text, "collective"
    if "even number of blocks" in message:
        text = (
            "Collective TMEM is shared by two blocks of a cluster: the kernel needs a cluster with an even number of "
            "blocks, `cluster=(2,)` for example."
        )
        return text, "collective"
    if "divisible by packing" in message or "acking must be" in message:
        return "The packing of a ref in TMEM is 1, 2, 4 or 8 and has to divide its columns.", "shape"
    if "multiple of 16" in message:
        return "The columns of this TMEM layout have to be a multiple of 16.", "shape"
    if "not divisible into tiles" in message:
        return "The shape of this ref is no whole number of tiles of its TMEM layout.", "shape"
    return None


def _fixes(fault: Fault, spot: Spot | None) -> Iterator[Fix | None]:
    if spot is None or not isinstance(spot.node, ast.Call):
        return
    message = fault.message
    if (match := _ROWS.search(message)) is not None:
        rows = int(match["rows"])
        for new in (128, 64) if rows > 64 else (64, 128):
            yield from resized(spot, 0, rows, new, "the rows of TMEM")
    elif "narrower than 32-bit" in message:
        for packed, use in (("True", "an operand"), ("False", "an accumulator")):
            edits = Editor(spot.path, spot.syntax)
            set_keyword(edits, spot.node, "packed", packed)
            yield suggested(f"Say `packed={packed}`, as for {use}", edits)
    else:
        names = {
            "transforms are not": ("transforms",),
            "packed cannot": ("packed", "layout"),
            "mix collective": ("collective",),
            "even number of blocks": ("collective",),
        }
        unwanted = next((n for words, n in names.items() if words in message), ())
        if "only supported for TMEM" in message:
            edits = Editor(spot.path, spot.syntax)
            for keyword in spot.node.keywords:
                if keyword.arg in ("packed", "collective", "layout"):
                    edits.remove_argument(spot.node, keyword)
            yield suggested("Leave out what only TMEM has", edits)
        for name in unwanted:
            found = next((k for k in spot.node.keywords if k.arg == name), None)
            if found is not None:
                edits = Editor(spot.path, spot.syntax)
                edits.remove_argument(spot.node, found)
                yield suggested(f"Leave out `{name}`", edits)
