"""
## What it does
Finds loads and stores of a TPU kernel that the memory of the ref does not allow: values read from or written to HBM
(`memory_space=pl.ANY`), arrays read from or written to SMEM, scalars stored to VMEM, and masks where there are none.

## Why it is wrong
A TPU core computes with vectors from VMEM and scalars from SMEM. Arrays in HBM (where `pl.ANY` leaves them) are only
reached by copies. SMEM gives and takes one scalar at a time; VMEM takes vectors.

## Example
```python
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1.0

pl.pallas_call(kernel, in_specs=[pl.BlockSpec(memory_space=pl.ANY)], ...)
```

## Use instead
VMEM, where the array fits:

```python
pl.pallas_call(kernel, in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)], ...)
```

or a copy into scratch:

```python
def kernel(x_hbm, o_ref, x_vmem):
    pltpu.sync_copy(x_hbm.at[pl.ds(0, 64)], x_vmem)
    o_ref[...] = x_vmem[...] + 1.0
```

A scalar result goes to an output in SMEM, or into VMEM as an array of one element.

## Fix safety
Another memory space is suggested: the array has to fit there. Storing an array of one element instead of a scalar is
safe.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`_load_lowering_rule` and `_masked_swap_lowering_rule` in `jax/_src/pallas/mosaic/lowering.py`, and those of
`jax/_src/pallas/mosaic/sc_lowering.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import block_sizes, site_table
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import expression_at
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("TPU",)

_FILE = "jax/_src/pallas/mosaic/lowering.py"
_SPARSE_CORE = "jax/_src/pallas/mosaic/sc_lowering.py"
_LOAD, _STORE = ("_load_lowering_rule",), ("_masked_swap_lowering_rule",)
_PALLAS = ("jax.experimental.pallas", "pl")
_NUMPY = ("jax.numpy", "jnp")


def _spaces(details: Details) -> str:
    """Where the ref lies, in the user's words."""
    space = details.ref.memory_space
    return {"any": "HBM (`pl.ANY`)", "hbm": "HBM", "smem": "SMEM", "semaphore": "semaphore memory"}.get(
        space, space.upper()
    )


def _far(details: Details) -> str:
    stores = details.equation is not None and details.equation.primitive in ("swap", "masked_swap", "addupdate")
    what = "stores to" if stores else "reads"
    return (
        f"`{details.source}` {what} {details.ref}, which lies in {_spaces(details)}: a TPU core reaches only VMEM and "
        f"SMEM. Copy it with `pltpu.sync_copy` or `pltpu.async_copy`, or keep it in VMEM."
    )


def _vector_in_smem(details: Details) -> str:
    stores = details.equation is not None and details.equation.primitive in ("swap", "masked_swap", "addupdate")
    what, type_ = ("stores", details.inputs(1)) if stores else ("reads", details.output())
    return (
        f"`{details.source}` {what} an array ({type_}) {'to' if stores else 'from'} {details.ref}, which lies in SMEM: "
        "SMEM holds scalars, one at a time (`ref[i, j]`). Keep it in VMEM to work on arrays."
    )


def _made_here(details: Details) -> Sequence[Related]:
    return details.ref.made_here(f"placed in {_spaces(details)}")


def _to_vmem(details: Details) -> Sequence[Fix]:
    return _moved(details, "VMEM")


def _moved(details: Details, space: str) -> Sequence[Fix]:
    """Another memory space in the spec of the ref."""
    ref = details.ref
    if ref.role == "scratch" and ref.made:
        return _other_scratch(details, space)
    block = block_sizes.block_of(details.fault, details.context, ref.role, ref.index) if ref.role else None
    if block is None:
        return ()
    given = block.spot.syntax.argument(block.call, 3 if len(block.call.args) > 3 else None, "memory_space")
    editor = Editor(block.spot.path, block.spot.syntax)
    name = editor.spell(f"jax.experimental.pallas.tpu.{space}", block.call, ("jax.experimental.pallas.tpu", "pltpu"))
    if given is None or name is None:
        return ()
    editor.replace(given, name)
    return (Fix(f"Keep {ref} in {space} (it has to fit)", editor.edits(), Safety.SUGGESTED),)


def _other_scratch(details: Details, space: str) -> Sequence[Fix]:
    """``pltpu.SMEM(shape, dtype)`` -> ``pltpu.VMEM(shape, dtype)``."""
    made = expression_at(details.context, details.ref.made[-1])
    if made is None or not isinstance(made.node, ast.Call) or not isinstance(made.node.func, ast.Attribute):
        return ()
    if not (made.syntax.dotted(made.node.func) or "").startswith("jax.experimental.pallas.tpu."):
        return ()
    editor = Editor(made.path, made.syntax)
    editor.rename(made.node.func, space)
    return (Fix(f"Keep {details.ref} in {space} (it has to fit)", editor.edits(), Safety.SUGGESTED),)


def _one_element(details: Details) -> Sequence[Fix]:
    """``o_ref[0, 0] = s`` -> ``o_ref[0:1, 0:1] = jnp.full((1, 1), s, o_ref.dtype)``."""
    spot = details.spot
    if spot is None or not isinstance(spot.node, ast.Subscript):
        return ()
    statement = spot.syntax.statement(spot.node)
    if not isinstance(statement, ast.Assign) or statement.targets != [spot.node]:
        return ()
    index = spot.node.slice
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and not isinstance(p.value, int)) for p in parts):
        return ()
    editor = Editor(spot.path, spot.syntax)
    full = editor.spell("jax.numpy.full", spot.node, _NUMPY)
    ds = editor.spell(f"{_PALLAS[0]}.ds", spot.node, _PALLAS)
    if full is None or ds is None:
        return ()
    texts = []
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, int):
            texts.append(f"{part.value}:{part.value + 1}")
        else:
            texts.append(f"{ds}({spot.syntax.source(part)}, 1)")
    ref = spot.syntax.source(spot.node.value)
    ones = f"({', '.join(['1'] * len(parts))}{',' if len(parts) == 1 else ''})"
    value = spot.syntax.source(statement.value)
    editor.replace(statement, f"{ref}[{', '.join(texts)}] = {full}({ones}, {value}, {ref}.dtype)")
    return (Fix("Store an array of one element", editor.edits(), Safety.SAFE), *_output_to_smem(details))


def _output_to_smem(details: Details) -> Sequence[Fix]:
    """The only output in SMEM, where the launch gives no specs for it."""
    launch = launch_of(details.fault, details.context)
    moved = _moved(details, "SMEM")
    if moved or launch is None or details.ref.role != "outputs" or launch.argument("out_specs", "grid_spec", "grid"):
        return moved
    if not launch.arguments().complete or launch.api != "pl.pallas_call":
        return ()
    editor = Editor(launch.spot.path, launch.syntax)
    spec = editor.spell(f"{_PALLAS[0]}.BlockSpec", launch.call, _PALLAS)
    smem = editor.spell("jax.experimental.pallas.tpu.SMEM", launch.call, ("jax.experimental.pallas.tpu", "pltpu"))
    output = launch.argument("out_shape")
    if spec is None or smem is None or output is None or not isinstance(output.syntax.value(output.node), ast.Call):
        return ()
    editor.insert_argument(launch.call, f"out_specs={spec}(memory_space={smem})")
    return (Fix("Keep the output in SMEM", editor.edits(), Safety.SUGGESTED),)


_ROWS = (
    Row(_FILE, _LOAD, _vector_in_smem, "Can only load scalars", related=_made_here, fixes=_to_vmem),
    Row(_FILE, _STORE, _vector_in_smem, "Can only store scalars", related=_made_here, fixes=_to_vmem),
    Row(
        _FILE,
        (*_LOAD, *_STORE),
        _far,
        "are only allowed on VMEM and SMEM",
        related=_made_here,
        fixes=_to_vmem,
    ),
    Row(
        _FILE,
        _STORE,
        "`{source}` takes a scalar ({b}), but {ref} lies in VMEM, which holds arrays: store an array of one element, "
        "or keep the ref in SMEM.",
        "Cannot store scalars to VMEM|Cannot swap scalars to VMEM",
        fixes=_one_element,
    ),
    Row(
        _FILE,
        _STORE,
        "`{source}` stores to SMEM with a mask, but SMEM takes one scalar at a time: use `pl.when` instead.",
        "SMEM store does not support masks",
        at=((None, "mask"),),
    ),
    Row(
        _FILE,
        _LOAD,
        "`{source}` loads with a mask, which a TPU kernel cannot do: load all and choose with `jnp.where`.",
        r"^$",
        at=((None, "mask"),),
        primitives=frozenset({"masked_load"}),
    ),
    Row(
        _FILE,
        _STORE,
        "`{source}` stores {b} with a mask: that works for 32-bit types only. Choose with `jnp.where` between the old "
        "and the new value, and store that.",
        "non-32-bit",
        at=((None, "mask"),),
    ),
    Row(
        _FILE,
        _STORE,
        "The mask of `{source}` has the shape {mask}, but the value {value}: they have to be the same.",
        r"got value shape (?P<value>\([\d, ]*\)) vs. mask shape (?P<mask>\([\d, ]*\))",
        at=((None, "mask"),),
    ),
    Row(
        _FILE,
        _STORE,
        "`{source}` stores with a mask to every other row, which a TPU kernel cannot do: choose with `jnp.where`, then "
        "store without the mask.",
        "strided store",
        at=((None, "mask"),),
    ),
    Row(
        _FILE,
        (*_LOAD, *_STORE),
        "`{source}` indexes {ref}, which has no dimensions, in VMEM: keep it in SMEM, or give it the shape (1, 1).",
        r"\(\)-shaped Ref",
        related=_made_here,
    ),
    Row(
        _SPARSE_CORE,
        ("_load_lowering_rule", "_store_lowering_rule"),
        "`{source}` reaches {ref}, which lies in {space}: a SparseCore works on memory of its own. Copy it to VMEM "
        "with `pltpu.async_copy` first.",
        r"does not support (?:loading from|storing to) <?(?:MemorySpace\.)?(?P<space>\w+)",
        related=_made_here,
    ),
    Row(
        _SPARSE_CORE,
        ("_load_lowering_rule", "_store_lowering_rule"),
        "`{source}`: a SparseCore reads and writes whole vectors, so that it cannot do this: {what}. "
        "Take a slice with stride 1, or use `plsc.load_gather` and `plsc.store_scatter`.",
        r"(?P<what>stride 1|Integer indexing of refs that follows a non-trivial slice|masked? scalar|masks)",
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
