"""
## What it does
Finds launches of `pl.kernel` (or `pl.mpmd_map`) whose bodies and meshes do not go together: a list of meshes for one
body, one mesh for a list of bodies, lists of different lengths, no body at all, bodies for which one launch has no
common memory, the same ref given twice.

## Why it is wrong
A launch is one body on one mesh, or a list of bodies with a list of meshes that belong to them one by one: the first
body runs on the first mesh, and so on. What several bodies share (scratch memory, outputs without a memory space) has
no place of its own, so it has to be said where it lies.

## Example
```python
pl.kernel(body, out_type=out, mesh=[mesh])
pl.kernel([load, compute], out_type=out, mesh=[mesh])
```

## Use instead
```python
pl.kernel(body, out_type=out, mesh=mesh)
pl.kernel([load, compute], out_type=out, mesh=[scalar_mesh, vector_mesh])
```

## Fix safety
A list around the only mesh, or the only mesh out of its list, is what was meant (safe).

## Applies to
TPU and Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`kernel` in `jax/_src/pallas/helpers.py`; `_mpmd_map` and what it calls in `jax/_src/pallas/mpmd.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.rules.shared.wording import count_text

SINCE = "0.1.0"
CONSTRUCTS = ("meshes and devices",)
_HELPERS = "jax/_src/pallas/helpers.py"
_MPMD = "jax/_src/pallas/mpmd.py"
_PAIR = "a launch is one body on one mesh, or a list of bodies with a list of as many meshes"


def _mesh(details: Details) -> Spot | None:
    launch = launch_of(details.fault, details.context)
    return launch.argument("mesh") if launch is not None else None


def _body(details: Details) -> Spot | None:
    launch = launch_of(details.fault, details.context)
    given = launch.arguments().get(0, "body") if launch is not None else None
    return launch.spot.at(given) if launch is not None and given is not None else None


def _elements(spot: Spot | None) -> list[ast.expr] | None:
    node = spot.syntax.value(spot.node) if spot is not None else None
    return list(node.elts) if isinstance(node, ast.List | ast.Tuple) else None


def _lengths(details: Details) -> str:
    bodies, meshes = _elements(_body(details)), _elements(_mesh(details))
    if bodies is None or meshes is None:
        return f"The list of bodies and the list of meshes have different lengths: {_PAIR}."
    those = f"{len(bodies)} bod{'y' if len(bodies) == 1 else 'ies'}"
    meshed = f"{len(meshes)} mesh{'' if len(meshes) == 1 else 'es'}"
    return f"There are {those} for {meshed}: each body belongs to the mesh at its own place in the list."


def _related(details: Details) -> Sequence[Related]:
    body = _body(details)
    return [Related(body.location, "This is what runs on it.")] if body is not None else []


def _unwrapped(details: Details) -> Sequence[Fix]:
    spot, meshes = _mesh(details), _elements(_mesh(details))
    if spot is None or meshes is None or len(meshes) != 1 or not isinstance(spot.node, ast.List | ast.Tuple):
        return ()
    text = spot.syntax.source(meshes[0])
    return keyword_edits.replace(spot, text, f"Give the mesh alone: `mesh={text}`", Safety.SAFE)


def _wrapped(details: Details) -> Sequence[Fix]:
    bodies = _elements(_body(details))
    if bodies is None or len(bodies) != 1:
        return ()
    return keyword_edits.wrap(_mesh(details), "[", "]", "Give a list of one mesh", Safety.SAFE)


def _twice(details: Details) -> str:
    call = details.call
    names = [ast.unparse(a) for a in call.args] if call is not None else []
    double = next((n for n in names if names.count(n) > 1), "")
    which = f"`{double}` is given {count_text(names.count(double), 'time')}" if double else "A ref is given twice"
    return f"{which} to this kernel, which would have two names for one memory: give it once and use it under one name."


_ROWS = (
    Row(
        _HELPERS,
        ("kernel",),
        f"This is a list of meshes for a single body: {_PAIR}.",
        "mesh cannot be a sequence when body is a single callable",
        at=_mesh,
        related=_related,
        fixes=_unwrapped,
    ),
    Row(
        _HELPERS,
        ("kernel",),
        "This is a list of meshes for the one function that is decorated: give it one mesh, or call `pl.kernel` with a "
        "list of bodies.",
        "mesh cannot be a sequence when using",
        at=_mesh,
        fixes=_unwrapped,
    ),
    Row(
        _HELPERS,
        ("kernel",),
        f"This is one mesh for a list of bodies: {_PAIR}.",
        "mesh must be a sequence",
        at=_mesh,
        related=_related,
        fixes=_wrapped,
    ),
    Row(_HELPERS, ("kernel",), _lengths, "must have the same length", at=_mesh, related=_related),
    Row(
        _MPMD,
        ("_mpmd_map",),
        "This launch has no body: give it at least one, with the mesh that it runs on.",
        "At least one mesh/function pair",
        at=_body,
    ),
    Row(_MPMD, ("_mpmd_map.<locals>.wrapper",), _twice, "same ref into a mpmd map"),
    Row(
        _MPMD,
        ("_mpmd_map.<locals>.wrapper",),
        "Scratch memory of a launch on several meshes belongs to the memory of one of them: say which, as in "
        "`pltpu.VMEM(shape, dtype)` for a core's own or `pltpu.HBM` for what they share.",
        "more than one mesh requires scratch_type",
    ),
    Row(
        _MPMD,
        ("_default_memory_space", "_aval_to_ref_aval"),
        "The meshes of this launch keep arrays in different memories, so each input and output has to say where it "
        "lies: give outputs a memory space (`pltpu.HBM(shape, dtype)`).",
        "different default memory spaces",
        at=_mesh,
    ),
    Row(
        _MPMD,
        ("_dedup_consts_and_unify_jaxpr_signatures",),
        "A body uses a ref from outside that is also given to the launch: use it by one of the two ways only.",
        "aliases with a passed-in ref",
    ),
    Row(
        _MPMD,
        ("get_super_mesh_shape",),
        "The meshes of this launch have an axis of the same name, `{axis}`, with different sizes: give it one size, or "
        "two names.",
        r"Conflicting size for axis (?P<axis>\S+)",
        at=_mesh,
    ),
    Row(
        _MPMD,
        ("_mpmd_map_lowering",),
        "This kernel is lowered for several platforms at once, which a kernel on a mesh cannot be: lower it for one.",
        "multi-platform",
    ),
    Row(
        _MPMD,
        ("_mpmd_map_lowering",),
        "A kernel on this mesh runs on TPUs and NVIDIA's GPUs, not on `{platform}`.",
        r"Unsupported platform: (?P<platform>\S+)",
    ),
    Row(
        _MPMD,
        ("_mpmd_map_abstract_eval",),
        "A kernel runs on one device: inside of `jax.shard_map` all axes of the mesh of devices have to be manual.",
        "all mesh axes to be Manual|varying manual axis types",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
