"""
## What it does
Finds loops and branches whose values change their layout on the way: a loop that carries a value in one layout and
gives it back in another, branches whose results have different layouts.

## Why it is wrong
The registers that hold a carried value are fixed for the whole loop, so its layout has to be the same before the
first step and after each. `jnp.zeros(...)` has the layout of a single repeated number (`plgpu.Layout.WG_SPLAT`);
after the first step it has that of what was added. Under lane semantics (the default of jax 0.10) the start value has
to be cast; warpgroup semantics infer a layout for the loop.

## Example
```python
total = jnp.zeros((256,), jnp.float32)
total = jax.lax.fori_loop(0, 64, lambda r, total: total + x_ref[r], total)
```

## Use instead
```python
total = plgpu.layout_cast(jnp.zeros((256,), jnp.float32), plgpu.Layout.WG_STRIDED((256,), vec_size=2))
total = jax.lax.fori_loop(0, 64, lambda r, total: total + x_ref[r], total)
```

## Fix safety
A cast of the start value changes nothing but its layout; warpgroup semantics lower the whole kernel in another way.
Both are suggestions.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12, mostly under lane semantics.

## Source
`fori` in `jax/experimental/mosaic/gpu/utils.py`; `_while_lowering_rule`, `_cond_lowering_rule` and
`_lower_jaxpr_to_for_loop` in `jax/_src/pallas/mosaic_gpu/lowering.py`; `_for_op_lowering_rule`,
`_while_op_lowering_rule` and `_if_op_lowering_rule` in `jax/experimental/mosaic/gpu/dialect_lowering.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU, PLGPU
from pallas_lsp.rules.shared.gpu_semantics import under_warpgroup_semantics
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("control flow", "layouts")
_DIALECT = f"{MGPU}dialect_lowering.py"
SITES = (
    (f"{MGPU}utils.py", "fori.<locals>.wrapper"),
    (LOWERING, "_while_lowering_rule"),
    (LOWERING, "_cond_lowering_rule"),
    (LOWERING, "_lower_jaxpr_to_for_loop.<locals>.as_values"),
    (_DIALECT, "_for_op_lowering_rule"),
    (_DIALECT, "_while_op_lowering_rule"),
)
_STRIDED = re.compile(r"WGStridedFragLayout\(shape=\((?P<shape>[\d, ]+)\), vec_size=(?P<vec>\d+)\)")
_LOOPS = {
    "jax.lax.fori_loop": (3, "init_val"),
    "jax.lax.while_loop": (2, "init_val"),
    "jax.lax.scan": (1, "init"),
}


def judge(fault: Fault, context: Context) -> Finding | None:
    branches = raised_in(fault, LOWERING, "_cond_lowering_rule") and not fault.message
    loops = (
        raised_in(fault, f"{MGPU}utils.py", "wrapper")
        or (raised_in(fault, LOWERING, "_while_lowering_rule") and "layout" in fault.message)
        or (raised_in(fault, LOWERING, "as_values") and "accumulators" in fault.message)
        or raised_in(fault, _DIALECT, "_for_op_lowering_rule", "_while_op_lowering_rule")
    )
    if not branches and not loops:
        return None
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    spot = Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.expr) else None
    source = short(context.source(place), 50)
    if branches:
        text = (
            f"The branches of `{source}` give their results in different layouts, but a value has one layout after "
            "the branch, whichever was taken. Cast the results to one layout with `plgpu.layout_cast`."
        )
    else:
        text = (
            f"`{source}` carries a value whose layout changes from one step to the next, but a loop keeps it in the "
            "same registers. Cast the start value to the layout that it has after a step."
        )
        if match := _STRIDED.search(fault.message):
            text += f" That is plgpu.Layout.WG_STRIDED(({match['shape']}), vec_size={match['vec']})."
    init = _init(spot) if spot is not None and loops else None
    related = []
    if init is not None and init.location != place:
        related.append(Related(init.location, "The carried value starts here."))
    fixes: list[Fix | None] = list(_casts(fault, init)) if init is not None else []
    fixes += under_warpgroup_semantics(context, fault)
    return finding(__name__, fault, context, narrowed(place, context), text, related, fixes)


def _init(spot: Spot) -> Spot | None:
    """The start value of a loop, through names."""
    if not isinstance(spot.node, ast.Call):
        return None
    where = _LOOPS.get(spot.syntax.called(spot.node) or "")
    given = spot.syntax.argument(spot.node, *where) if where is not None else None
    if given is None:
        return None
    value = spot.syntax.value(given)
    return spot.at(value if isinstance(value, ast.expr) else given)


def _casts(fault: Fault, init: Spot) -> Iterator[Fix | None]:
    """The start value cast to the layout that jax found after a step."""
    match = _STRIDED.search(fault.message)
    if isinstance(init.node, ast.Tuple | ast.List):
        return
    edits = Editor(init.path, init.syntax)
    cast = edits.spell(f"{PLGPU}.layout_cast", init.node, ALIAS)
    layout = edits.spell(f"{PLGPU}.Layout", init.node, ALIAS)
    if cast is None or layout is None:
        return
    names = []
    if match is not None:
        shape = match["shape"].strip()
        names.append(f"{layout}.WG_STRIDED(({shape}{'' if ',' in shape else ','}), vec_size={match['vec']})")
    names += [f"{layout}.WGMMA"] if "TiledLayout" in fault.message or match is None else []
    for name in names:
        edits = Editor(init.path, init.syntax)
        edits.replace(init.node, f"{cast}({init.source}, {name})")
        yield suggested(f"Cast the start value to `{name}`", edits)
