"""
## What it does
Finds launches that ask Triton for what only the TPU backend of `pl.pallas_call` has: scalar prefetch, scratch memory, a
grid whose size is known at run time only, a mesh, pipelining options of a BlockSpec, padded element blocks, or a grid
that is too large.

## Why it is wrong
A Triton kernel is a grid of independent programs: each computes its own place in memory, and there is nothing that runs
before them, between them, or beside them. So there is no one to prefetch scalars, no memory that is kept from step to
step, and no pipeline.

## Example
```python
pl.pallas_call(
    kernel,
    grid_spec=pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((32, 128), lambda i, rows: (rows[i], 0))],
        out_specs=pl.BlockSpec((32, 128), lambda i, rows: (i, 0)),
    ),
    ...
)
```

## Use instead
Pass the array of indices as an ordinary input, and index the other input with it in the kernel:

```python
def kernel(rows_ref, x_ref, o_ref):
    row = rows_ref[pl.program_id(0)]
    o_ref[...] = x_ref[pl.ds(row * 32, 32), :]

pl.pallas_call(
    kernel,
    grid=(4,),
    in_specs=[pl.no_block_spec, pl.no_block_spec],
    out_specs=pl.BlockSpec((32, 128), lambda i: (i, 0)),
    ...
)
```

Values that a TPU kernel keeps in scratch live in variables or in the carry of a `jax.lax.fori_loop`.

## Fix safety
Leaving out a pipelining option is safe: Triton has its own pipelining (`num_stages`). The others have no fix.

## Applies to
Kernels for NVIDIA GPUs that are lowered through Triton; jax 0.10, 0.11 and 0.12.

## Source
`pallas_call_lowering` and `normalize_grid` in `jax/_src/pallas/triton/pallas_call_registration.py`, and
`lower_jaxpr_to_triton_module`, `_eval_index_map` and `_process_grid_to_3d_grid` in
`jax/_src/pallas/triton/lowering.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import block_sizes, keyword_edits, site_table
from pallas_lsp.rules.shared.launches import born, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("Triton", "kernel bodies and launches")

_REGISTRATION = "jax/_src/pallas/triton/pallas_call_registration.py"
_LOWERING = "jax/_src/pallas/triton/lowering.py"
_CHECKED = ((_REGISTRATION, "pallas_call_lowering"), (_LOWERING, "lower_jaxpr_to_triton_module"))


def _given(*names: str) -> Callable[[Details], Spot | None]:
    """The place of an argument of the launch, else the name of what launches."""

    def place(details: Details) -> Spot | None:
        launch = launch_of(details.fault, details.context)
        return launch.argument(*names) if launch is not None else None

    return place


def _launch(details: Details) -> Spot | None:
    """The name of what launches."""
    launch = launch_of(details.fault, details.context)
    if launch is None:
        return None
    node = launch.syntax.node_at(launch.name.range)
    return launch.spot.at(node) if isinstance(node, ast.expr) else launch.spot


def _grid_spec_here(details: Details) -> Sequence[Related]:
    given = (details.fault.facts.get("given") or {}).get("grid_spec") or {}
    made = born(details.context, given.get("frames"))
    if made is None or not isinstance(made.node, ast.Call):
        return ()
    count = made.syntax.argument(made.node, 0, "num_scalar_prefetch")
    place = made.at(count) if count is not None else made
    return (Related(place.location, "Scalar prefetch is asked for here."),)


def _scratch(details: Details) -> Spot | None:
    specs = (details.fault.facts.get("given") or {}).get("scratch") or ()
    for spec in specs:
        made = born(details.context, spec.get("frames"))
        if made is not None:
            return made
    return _given("scratch_shapes", "scratch_types")(details)


def _spec(details: Details) -> Spot | None:
    """The BlockSpec whose index map was being lowered."""
    refused = details.fault.facts.get("refused") or {}
    role, index = str(refused.get("role", "")), refused.get("index")
    if not isinstance(index, int):
        return None
    block = block_sizes.block_of(details.fault, details.context, role, index)
    return block.spot if block is not None else None


def _pipeline_mode(details: Details) -> Spot | None:
    spec = _spec(details)
    if spec is None or not isinstance(spec.node, ast.Call):
        return spec
    given = spec.syntax.argument(spec.node, None, "pipeline_mode")
    return spec.at(given) if given is not None else spec


def _no_pipeline_mode(details: Details) -> Sequence[Fix]:
    return keyword_edits.remove_keyword(_spec(details), "pipeline_mode", "Leave the pipelining to Triton", Safety.SAFE)


def _launch_here(details: Details) -> Sequence[Related]:
    launch = launch_of(details.fault, details.context)
    return (Related(launch.name, "The kernel is launched through Triton here."),) if launch is not None else ()


def _dynamic_axis(details: Details) -> str:
    grid = list((details.fault.facts.get("given") or {}).get("grid") or ())
    axes = [str(axis) for axis, size in enumerate(grid) if not isinstance(size, int)]
    which = f"axis {', '.join(axes)} of the grid is" if axes else "the grid is"
    return (
        f"The size of {which} known at run time only, but a Triton kernel needs a grid of Python numbers: compute it "
        "from shapes (or static arguments), and leave out what lies beyond with a mask."
    )


_ROWS = (
    *(
        Row(
            file,
            (function,),
            "This launch prefetches scalars, which is a feature of TPU kernels and not available through Triton: pass "
            "them as an ordinary input, read them in the kernel (`i_ref[pl.program_id(0)]`) and index the other refs.",
            "scalar prefetch",
            at=_launch,
            related=_grid_spec_here,
        )
        for file, function in _CHECKED
    ),
    *(
        Row(file, (function,), _dynamic_axis, "dynamic grid", at=_given("grid"), related=_launch_here)
        for file, function in _CHECKED
    ),
    Row(
        _LOWERING,
        ("lower_jaxpr_to_triton_module",),
        "Scratch memory is not available through Triton: keep the values in variables, or in the carry of a "
        "`jax.lax.fori_loop`.",
        "scratch memory",
        at=_scratch,
        related=_launch_here,
    ),
    Row(
        _REGISTRATION,
        ("pallas_call_lowering",),
        "A mesh is not available through Triton: launch with `grid=` instead.",
        "mesh",
        at=_given("mesh"),
    ),
    Row(
        _REGISTRATION,
        ("normalize_grid",),
        "A Triton grid has at most three axes: put several axes together and take the index apart in the kernel.",
        at=_given("grid"),
    ),
    Row(
        _LOWERING,
        ("_process_grid_to_3d_grid",),
        "The grid is too large for CUDA: at most 2**31 - 1 programs along its first axis and 65535 along the others. "
        "Use larger blocks.",
        exceptions=("AssertionError",),
        at=_given("grid"),
    ),
    Row(
        _LOWERING,
        ("_eval_index_map",),
        "`pipeline_mode` is a feature of TPU kernels: Triton does its own pipelining "
        "(`num_stages` of `plt.CompilerParams`).",
        "Pipeline mode",
        at=_pipeline_mode,
        fixes=_no_pipeline_mode,
    ),
    Row(
        _LOWERING,
        ("_eval_index_map",),
        "A padded element block (`pl.Element(n, padding)`) is not available through Triton: pad the array with "
        "`jnp.pad` outside of the kernel, or leave out what lies beyond with a mask.",
        "padding",
        at=_spec,
    ),
    Row(
        _LOWERING,
        ("_get_start_index",),
        "This kind of block dimension is not available through Triton: use a number, `None` or `pl.Element`.",
        at=_spec,
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
