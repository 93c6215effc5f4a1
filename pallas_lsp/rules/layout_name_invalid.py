"""
## What it does
Finds layouts that are written wrongly: called with arguments that they do not take, not called where they need some, or
something that is no layout, such as the name of one.

## Why it is wrong
Layouts are the members of `plgpu.Layout`. `plgpu.Layout.WGMMA` and most others fit any shape of whole tiles and are
used as they are. `plgpu.Layout.WG_STRIDED` is made for one shape, with the number of neighbouring elements that each
thread holds.

## Example
```python
x = plgpu.layout_cast(x_ref[...], plgpu.Layout.WG_STRIDED)
y = plgpu.layout_cast(y_ref[...], plgpu.Layout.WGMMA(128))
```

## Use instead
```python
x = plgpu.layout_cast(x_ref[...], plgpu.Layout.WG_STRIDED((64, 128), vec_size=2))
y = plgpu.layout_cast(y_ref[...], plgpu.Layout.WGMMA)
```

## Fix safety
The fixes are suggestions: which layout is meant the text does not always tell.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`Layout.to_mgpu` and `ParameterizedLayout.to_mgpu` in `jax/_src/pallas/mosaic_gpu/core.py`;
`WGStridedFragLayout` in `jax/experimental/mosaic/gpu/fragmented_array.py`.
"""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_layouts import result_shape, strided_layouts
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import CORE, PLGPU, called
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("layouts",)
SPECIFICITY = 36
SITES = (
    (CORE, "Layout.to_mgpu.<locals>.check_no_args"),
    (CORE, "ParameterizedLayout.to_mgpu"),
    (CORE, "ReducedLayout.to_mgpu"),
)
_UNSIZED = re.compile(r"FragLayout\.__init__\(\) missing")
_NONE = "has no attribute 'to_mgpu'"


def judge(fault: Fault, context: Context) -> Finding | None:
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    spot = Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.expr) else None
    if raised_in(fault, CORE, "check_no_args", "to_mgpu") and "with arguments" in fault.message:
        return _arguments(fault, context, spot)
    if _NONE in fault.message:
        return _no_layout(fault, context, spot)
    if _UNSIZED.search(fault.message):
        return _unsized(fault, context, spot)
    return None


def _arguments(fault: Fault, context: Context, spot: Spot | None) -> Finding:
    statement = spot.syntax.statement(spot.node) if spot is not None else None
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []
    unsized = [c for c in calls if spot and ".Layout." in (spot.syntax.dotted(c.func) or "")]
    found = next((c for c in unsized if spot and not spot.syntax.source(c.func).endswith("WG_STRIDED")), None)
    place = context.locate(fault)
    fixes: list[Fix | None] = []
    text = "This layout takes no arguments: it fits any shape of whole tiles."
    if found is not None and spot is not None:
        place = spot.at(found).location
        name = spot.syntax.source(found.func)
        text = f"`{name}` takes no arguments: it fits any shape of whole tiles."
        edits = Editor(spot.path, spot.syntax)
        edits.replace(found, name)
        fixes.append(suggested(f"Write `{name}`", edits))
    return finding(__name__, fault, context, place, text, (), fixes)


def _no_layout(fault: Fault, context: Context, spot: Spot | None) -> Finding:
    """Something else where a layout is asked for, such as the name of one."""
    statement = spot.syntax.statement(spot.node) if spot is not None else None
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []
    given: ast.expr | None = None
    for call in calls:
        if spot is not None and called(spot.syntax, call) in ("layout_cast", "load", "async_load_tmem"):
            arguments = spot.syntax.arguments(call)
            given = arguments.keywords.get("layout") or arguments.get(1, "new_layout")
    if spot is None or given is None:
        text = "Layouts are those of `plgpu.Layout`; this is none."
        return finding(__name__, fault, context, narrowed(context.locate(fault), context), text)
    source = short(spot.syntax.source(given), 40)
    text = f"`{source}` is no layout: layouts are those of `plgpu.Layout`, such as `plgpu.Layout.WGMMA`."
    value = spot.syntax.value(given)
    edits = Editor(spot.path, spot.syntax)
    owner = edits.spell(f"{PLGPU}.Layout", given, ALIAS)
    fixes = []
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.isidentifier() and owner:
        edits.replace(given, f"{owner}.{value.value}")
        fixes.append(suggested(f"Write `{owner}.{value.value}`", edits))
    return finding(__name__, fault, context, spot.at(given).location, text, (), fixes)


def _unsized(fault: Fault, context: Context, spot: Spot | None) -> Finding:
    """A layout with sizes that is given none."""
    statement = spot.syntax.statement(spot.node) if spot is not None else None
    named = [
        n
        for n in ast.walk(statement or ast.Module([], []))
        if isinstance(n, ast.Attribute) and n.attr == "WG_STRIDED" and spot and not _is_called(spot.syntax, n)
    ]
    shape = result_shape(fault)
    example = strided_layouts("plgpu.Layout", shape or (64, 128))[-1]
    text = f"A strided layout is made for one shape, with the number of neighbouring elements of a thread: `{example}`."
    if spot is None or len(named) != 1:
        return finding(__name__, fault, context, narrowed(context.locate(fault), context), text)
    fixes = []
    for layout in strided_layouts(spot.syntax.source(named[0].value), shape) if shape is not None else ():
        edits = Editor(spot.path, spot.syntax)
        edits.replace(named[0], layout)
        fixes.append(suggested(f"Write `{layout}`", edits))
    return finding(__name__, fault, context, spot.at(named[0]).location, text, (), fixes)


def _is_called(syntax: Syntax, node: ast.expr) -> bool:
    parent = syntax.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node
