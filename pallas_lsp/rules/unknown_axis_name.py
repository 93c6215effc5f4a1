"""
## What it does
Finds axis names in a kernel that the launch does not have: `jax.lax.axis_index("n")` in a kernel with
`grid_names=("m",)`, `collective_axes="c"` without such a cluster axis.

## Why it is wrong
A kernel asks for its place in the grid, the cluster and among its threads by the names that the launch gives:
`grid_names=`, `cluster_names=`, `thread_name=`. Barriers and copies of a cluster, and the axis along which blocks
multiply together, are named by the axes of the cluster alone.

## Example
```python
def body(x_ref, o_ref):
    i = jax.lax.axis_index("n")

plgpu.kernel(body, out_type=..., grid=(4,), grid_names=("m",))
```

## Use instead
```python
i = jax.lax.axis_index("m")
```

## Fix safety
The fixes are suggestions: which of the axes is meant the kernel does not tell.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_check_axis_names` in `jax/_src/lax/parallel.py`; `AxisEnv.axis_size` in `jax/_src/core.py`; `_axis_index_rule`,
`_resolve_cluster_axis` and `_run_scoped_lowering_rule` in `jax/_src/pallas/mosaic_gpu/lowering.py`;
`_collective_mma_predicate` in `jax/_src/pallas/mosaic_gpu/primitives.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pallas_lsp.model import Backend, Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mesh import axes_of, mesh_of, repr_name
from pallas_lsp.rules.shared.gpu_operands import LOWERING, PRIMITIVES
from pallas_lsp.rules.shared.gpu_pipelines import pipeline_of
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot, follow
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids", "meshes and devices")
SITES = (
    ("jax/_src/lax/parallel.py", "_check_axis_names"),
    ("jax/_src/core.py", "AxisEnv.axis_size"),
    (LOWERING, "_resolve_cluster_axis"),
    (LOWERING, "_axis_index_rule"),
    (PRIMITIVES, "_collective_mma_predicate"),
)
_NAME = re.compile(
    r"unbound axis name:? (?P<a>[\w.-]+?)\.?(?:\s|$)|Unknown cluster axis (?P<b>[\w.-]+),"
    r"|Axis (?P<c>[\w.-]+) does not refer"
)


def judge(fault: Fault, context: Context) -> Finding | None:
    capture = context.capture(fault)
    if capture is None or capture.backend is not Backend.MOSAIC_GPU:
        return None
    cluster = raised_in(fault, LOWERING, "_resolve_cluster_axis")
    unbound = raised_in(fault, "jax/_src/lax/parallel.py", "_check_axis_names") or raised_in(
        fault, "jax/_src/core.py", "axis_size"
    )
    if not cluster and not unbound and not raised_in(fault, LOWERING, "_axis_index_rule"):
        return None
    match = _NAME.search(fault.message)
    name = next((g for g in match.groups() if g), "") if match is not None else ""
    spot = _written(context, fault, name) or _of_pipeline(context, fault, name)
    place = spot.location if spot is not None else narrowed(context.locate(fault), context)
    mesh = mesh_of(fault)
    known = [str(n) for n in mesh.get("cluster_names") or ()] if cluster else axes_of(fault)
    what = "cluster axis" if cluster else "axis"
    has = f"its {'cluster axes' if cluster else 'axes'} are {_listed(known)}" if known else f"it has no {what}"
    asked = f'"{name}"' if name else "This name"
    text = f"{asked} is no {what} of this kernel: {has}."
    if not known:
        text += " `cluster=` and `cluster_names=` make one." if cluster else " `grid=` and `grid_names=` make some."
    launch = launch_of(fault, context)
    given = launch.argument("cluster_names" if cluster else "grid_names", "grid", "thread_name") if launch else None
    related = [Related(given.location, "The launch names its axes here.")] if given is not None else []
    return finding(__name__, fault, context, place, text, related, _fixes(spot, known))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{n}"' for n in names)


def _written(context: Context, fault: Fault, name: str) -> Spot | None:
    """Where the name is written in the call at fault."""
    place = context.locate(fault)
    syntax, node = context.syntax(place.path), context.node(place)
    if syntax is None or node is None:
        return None
    parts = [n for n in ast.walk(node) if isinstance(n, ast.expr)]
    names = [n for n in parts if _is(syntax.value(n), name)]
    if names:
        return Spot(place.path, syntax, names[0])
    frames = context.frames(fault)
    for part in parts:
        outer, _ = follow(context, frames, Spot(place.path, syntax, part, len(frames) - 1), ())
        if outer.node is not part and _is(outer.syntax.value(outer.node), name):
            return outer
    return None


def _of_pipeline(context: Context, fault: Fault, name: str) -> Spot | None:
    """The option of a pipeline that names the axis, where it fails when the pipeline runs."""
    pipeline = pipeline_of(fault, context)
    for keyword in pipeline.call.keywords if pipeline is not None else ():
        if pipeline is not None and _is(pipeline.spot.syntax.value(keyword.value), name):
            return pipeline.spot.at(keyword.value)
    return None


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == name


def _fixes(spot: Spot | None, known: Sequence[str]) -> Iterator[Fix | None]:
    if spot is None:
        return
    if not known:
        yield _left_out(spot)
    for name in known[:4]:
        edits = Editor(spot.path, spot.syntax)
        edits.replace(spot.node, repr_name(name))
        yield suggested(f'Ask for the axis "{name}"', edits)


_OPTIONAL = frozenset({"collective_axes", "collective_axis", "partitioned_axis"})


def _left_out(spot: Spot) -> Fix | None:
    """The option that names the axis taken out of its call, where there are no such axes at all."""
    keyword = next((p for p in spot.syntax.ancestors(spot.node) if isinstance(p, ast.keyword)), None)
    call = spot.syntax.parent(keyword) if keyword is not None else None
    function = spot.syntax.called(call) if isinstance(call, ast.Call) else None
    if keyword is None or not isinstance(call, ast.Call) or keyword.arg not in _OPTIONAL or "copy" not in str(function):
        return None
    edits = Editor(spot.path, spot.syntax)
    edits.remove_argument(call, keyword)
    return suggested(f"Leave `{keyword.arg}` out", edits)
