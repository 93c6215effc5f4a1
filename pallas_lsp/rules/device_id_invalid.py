"""
## What it does
Finds semaphores and copies that name a device which the mesh does not have: the wrong number of coordinates, an unknown
axis, an axis twice, coordinates of cores among those of devices, a kind of number that cannot be given so.

## Why it is wrong
A device is named by a number (`pl.DeviceIdType.LOGICAL`) or by its place in the mesh of `jax.shard_map`
(`pl.DeviceIdType.MESH`): a tuple with one coordinate for each axis, or a dict of axis names and coordinates, in which
also the axes of the cores may stand. Axes that are left out of a dict are those of the device itself.

## Example
```python
pl.semaphore_signal(sem, device_id=(0, 1), device_id_type=pl.DeviceIdType.MESH)   # a mesh of one axis, "x"
```

## Use instead
```python
pl.semaphore_signal(sem, device_id={"x": 1}, device_id_type=pl.DeviceIdType.MESH)
```

## Fix safety
A dict with another `device_id_type` gets the one for places in the mesh (safe).

## Applies to
TPU and Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`canonicalize_device_id`, `_device_id_dict_to_mesh`, `device_id_to_logical` and `_transform_semaphore` in
`jax/_src/pallas/primitives.py`; `_device_id_to_logical` in `jax/_src/pallas/mosaic/lowering.py` and
`jax/_src/pallas/mosaic_gpu/lowering.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("meshes and devices",)
SPECIFICITY = 55
_PRIMITIVES = "jax/_src/pallas/primitives.py"
_TPU = "jax/_src/pallas/mosaic/lowering.py"
_GPU = "jax/_src/pallas/mosaic_gpu/lowering.py"
_DEVICE = ((None, "device_id"),)


def _counted(details: Details) -> str:
    ids, axes = int(details["ids"]), int(details["axes"])
    return (
        f"A device is named by one coordinate for each axis of the mesh, which has {count_text(axes, 'axis')}: "
        f"{ids} {'is' if ids == 1 else 'are'} given."
    ).replace("axiss", "axes")


def _as_mesh(details: Details) -> Sequence[Fix]:
    spot = details.spot
    if spot is None or not isinstance(spot.node, ast.Call):
        return ()
    editor = Editor(spot.path, spot.syntax)
    base = editor.spell("jax.experimental.pallas.DeviceIdType", spot.node, ("jax.experimental.pallas", "pl"))
    if base is None:
        return ()
    return keyword_edits.set_keyword(
        spot, "device_id_type", f"{base}.MESH", "Name the device by its place in the mesh", Safety.SAFE
    )


_ROWS = (
    Row(
        _PRIMITIVES,
        ("canonicalize_device_id",),
        "This names an axis of the mesh twice: {axes}. Each axis has one coordinate.",
        r"Duplicate axis key in device_id: (?P<axes>.*?)\.?$",
        at=_DEVICE,
    ),
    Row(
        _PRIMITIVES,
        ("device_id_to_logical",),
        "A dict of axis names is a place in the mesh, so that it needs `device_id_type=pl.DeviceIdType.MESH`.",
        "must be MESH if",
        at=((None, "device_id_type"), (None, "device_id")),
        fixes=_as_mesh,
    ),
    Row(
        _PRIMITIVES,
        ("device_id_to_logical",),
        _counted,
        r"got (?P<ids>\d+) ids for a (?P<axes>\d+)D mesh",
        at=_DEVICE,
    ),
    Row(
        _PRIMITIVES,
        ("device_id_to_logical",),
        "`{type}` is no way to name a device: there are `pl.DeviceIdType.MESH` and `pl.DeviceIdType.LOGICAL`.",
        r"Unsupported device id type: (?P<type>.*)",
        at=((None, "device_id_type"),),
    ),
    Row(
        _PRIMITIVES,
        ("_device_id_dict_to_mesh",),
        "{axes} puts axes of devices and axes of cores together in one key: give each a key of its own.",
        r"(?P<axes>.*) mixes JAX mesh and Pallas mesh",
        at=_DEVICE,
    ),
    Row(
        _PRIMITIVES,
        ("_transform_semaphore",),
        "`{source}` takes a part of an array of semaphores that is no whole number of them: index it to one.",
        "does not match aval shape",
    ),
    *(
        Row(
            file,
            ("jax_fn",),
            "This names axes that neither the mesh of devices nor the kernel's own has: {axes}.",
            r"Unrecognized axes in device_id: (?P<axes>.*)",
            at=_DEVICE,
        )
        for file in (_TPU, _GPU)
    ),
    Row(
        _TPU,
        ("jax_fn",),
        "This reaches a kernel on another kind of core, which needs a coordinate for each of its axes: there "
        "is none for {axes}.",
        r"axes are missing from the mesh: (?P<axes>\{.*?\})",
        at=_DEVICE,
    ),
    Row(
        _TPU,
        ("jax_fn",),
        "This gives several coordinates of cores, but a core has one: {axes}.",
        r"Expected zero or one core index, got core_index_map=(?P<axes>.*?)\.?$",
        at=_DEVICE,
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
