"""
## What it does
Finds `pl.core_map` and `pl.pallas_call(..., mesh=...)` whose body does nothing that remains, or whose mesh does not go
with the rest: a body that returns a value, a grid of another shape, memory that the mesh does not have, kernels inside
of `jax.shard_map` with axes that are not manual.

## Why it is wrong
The body of `pl.core_map` works on refs: what it returns is lost, and without a store or another effect there is nothing
to run. A mesh has a shape and memories of its own, and a kernel runs on one device.

## Example
```python
@pl.core_map(mesh)
def _():
    y = x_ref[...] + 1
```

## Use instead
```python
@pl.core_map(mesh)
def _():
    o_ref[...] = x_ref[...] + 1
```

## Fix safety
This rule offers no fix.

## Applies to
TPU and Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`core_map` and its lowering, `CoreMemorySpace.__post_init__` in `jax/_src/pallas/core.py`; `_pallas_call` and
`_pallas_call_abstract_eval` in `jax/_src/pallas/pallas_call.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.site_table import Row

SINCE = "0.1.0"
CONSTRUCTS = ("meshes and devices", "kernel bodies and launches")
SPECIFICITY = 45
_CORE = "jax/_src/pallas/core.py"
_CALL = "jax/_src/pallas/pallas_call.py"

_ROWS = (
    Row(
        _CORE,
        ("core_map.<locals>.wrapped",),
        "The body of `pl.core_map` returns a value, which nothing receives: store it into a ref instead.",
        "should return None",
    ),
    Row(
        _CORE,
        ("core_map_lowering_rule",),
        "This `pl.core_map` has no effect: its body stores into no ref. Store what it computes (`o_ref[...] = ...`), "
        "or leave it out.",
        "without discharging",
    ),
    Row(
        _CORE,
        ("CoreMemorySpace.__post_init__",),
        "The cores of this mesh have no {space}: give it a memory that they have.",
        r"Memory space (?P<space>\S+) is not supported by mesh",
    ),
    Row(
        _CORE,
        ("get_lowering_rule",),
        "These are parameters for {theirs}, but the kernel is compiled for {ours}, which has parameters of its own.",
        r"Compiler params for platform (?P<theirs>\S+) cannot be used for (?P<ours>\S+) lowering",
        at=((None, "compiler_params"),),
    ),
    Row(
        _CALL,
        ("_pallas_call",),
        "The grid of a launch on a mesh is the mesh's shape, {mesh}, but this one is {grid}: leave `grid` out.",
        r"Mesh shape (?P<mesh>.*) does not match grid shape (?P<grid>.*?)\.?$",
        at=((None, "grid"),),
    ),
    Row(
        _CALL,
        ("_pallas_call_abstract_eval",),
        "A kernel runs on one device: inside of `jax.shard_map` all axes of the mesh of devices have to be manual.",
        "all mesh axes to be Manual",
    ),
    Row(
        _CALL,
        ("_pallas_call_abstract_eval",),
        "A pinned buffer is written in place, so that it needs `input_output_aliases` to the output that it becomes.",
        "pinned buffers",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
