"""
## What it does
Finds kernels that are launched on a mesh of TPU cores (`pltpu.create_tensorcore_mesh`, `plsc.VectorSubcoreMesh`,
`plsc.ScalarSubcoreMesh`) which the mesh or the chip does not allow: more cores than there are, SparseCores on a chip
without, two different meshes, inputs in VMEM that several cores would share.

## Why it is wrong
A mesh names the cores of one chip that run the kernel together. A chip has a fixed number of TensorCores, and some have
SparseCores with a fixed number of subcores. Each core has a VMEM of its own, so that inputs and outputs of several
cores have to lie in HBM.

## Example
```python
mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=8)
```

## Use instead
A mesh with the cores that the chip has; leave the numbers out to take all:

```python
mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")
```

## Fix safety
This rule offers no fix.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`jax/_src/pallas/mosaic/sc_core.py`, `TensorCoreMesh` and `create_tensorcore_mesh` in `jax/_src/pallas/mosaic/core.py`,
`mpmd_map_tpu_lowering_rule` in `jax/_src/pallas/mosaic/pallas_call_registration.py`, `_get_mesh_shape_and_semantics` in
`jax/_src/pallas/mosaic/lowering.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean
from pallas_lsp.rules.shared import compiler_params, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "meshes and devices")

_CORE = "jax/_src/pallas/mosaic/core.py"
_SPARSE_CORE = "jax/_src/pallas/mosaic/sc_core.py"
_LOWERING = "jax/_src/pallas/mosaic/lowering.py"
_REGISTRATION = "jax/_src/pallas/mosaic/pallas_call_registration.py"
_RULE = ("mpmd_map_tpu_lowering_rule",)


def _told(details: Details) -> str:
    said = clean(details.fault.message)
    return f"This mesh is refused: {said[0].lower()}{said[1:]}" if said else "This mesh is refused."


_ROWS = (
    Row(
        _SPARSE_CORE,
        ("__post_init__",),
        "The mesh asks for {wanted} {what}, but the TPU that is compiled for has only {there}: leave the number out to "
        "take all.",
        r"Mesh has (?P<wanted>\d+) (?P<what>\w+), but the current TPU chip has\s+only (?P<there>\d+)",
        at=((None, "num_cores"), (None, "num_subcores")),
    ),
    Row(
        _SPARSE_CORE,
        ("check_is_compatible_with",),
        "Two meshes of the same kind, or with names that collide, are used together: {what}.",
        r"(?P<what>.*)",
    ),
    Row(_SPARSE_CORE, ("supported_shapes", "transform_type"), _told),
    Row(
        _CORE,
        ("check_is_compatible_with",),
        "Two different meshes of TensorCores are used together: use one for both.",
    ),
    Row(
        _CORE,
        ("create_tensorcore_mesh",),
        "`devices` and `num_cores` both say how many cores there are: give only one of them.",
        at=((None, "num_cores"), (None, "devices")),
    ),
    Row(
        _CORE,
        ("_tensorcore_mesh_discharge_rule",),
        _told,
        exceptions=("NotImplementedError", "ValueError"),
    ),
    Row(
        _LOWERING,
        ("_get_mesh_shape_and_semantics",),
        "A mesh of TensorCores has one axis, but this one has more.",
        "more than one dimension",
        at=compiler_params.launch_name,
    ),
    Row(
        _LOWERING,
        ("_get_mesh_shape_and_semantics",),
        "This is no mesh of TPU cores: make one with `pltpu.create_tensorcore_mesh` or `plsc.VectorSubcoreMesh`.",
        at=compiler_params.launch_name,
    ),
    Row(
        _REGISTRATION,
        _RULE,
        "Inputs and outputs of a kernel on several cores cannot lie in VMEM, which each core has for "
        "itself: keep them in HBM (`pltpu.HBM` or `pl.ANY`) and copy.",
        "VMEM inputs/outputs",
        at=compiler_params.launch_name,
    ),
    Row(
        _REGISTRATION,
        _RULE,
        "The kernel is written for SparseCores, which the TPU that is compiled for does not have.",
        "SparseCore",
        at=compiler_params.launch_name,
    ),
    Row(
        _REGISTRATION,
        _RULE,
        "This mesh does not say what cores it is made of: make it with `pltpu.create_tensorcore_mesh` or "
        "`plsc.VectorSubcoreMesh`.",
        "core_type|kernel type",
        at=compiler_params.launch_name,
    ),
    Row(
        _REGISTRATION,
        _RULE,
        "Several kernels for TensorCores cannot be launched together: launch them one after another.",
        "TC kernels",
        at=compiler_params.launch_name,
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
