"""
## What it does
Finds operands of `plgpu.tcgen05_mma`, of the loads and stores of TMEM and of the copies into TMEM that are in the wrong
memory.

## Why it is wrong
Blackwell's tensor core accumulates in TMEM. It reads the right operand from SMEM and the left one from SMEM or TMEM;
scales of block-scaled products are in TMEM. `plgpu.async_load_tmem` and `plgpu.async_store_tmem` move values between
registers and TMEM, `plgpu.async_copy_smem_to_tmem(smem_ref, tmem_ref)` between the two memories.

## Example
```python
scratch_types=[..., plgpu.SMEM((128, 128), jnp.float32)]     # acc
plgpu.tcgen05_mma(acc, a_smem, b_smem, barrier)
```

## Use instead
```python
scratch_types=[..., plgpu.TMEM((128, 128), jnp.float32)]
```

## Fix safety
Allocating the accumulator in TMEM is a suggestion: its reads become loads of TMEM.

## Applies to
Mosaic GPU on Blackwell; jax 0.10, 0.11 and 0.12.

## Source
`_tcgen05_mma_abstract_eval`, `_async_load_tmem_abstract_eval`, `_async_store_tmem_abstract_eval`,
`_async_copy_to_tmem_abstract_eval` and `_async_copy_smem_to_tmem_abstract_eval` in
`jax/_src/pallas/mosaic_gpu/primitives.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import ALIAS
from pallas_lsp.rules.shared.gpu_operands import (
    PLGPU,
    PRIMITIVES,
    Operand,
    argument,
    call_spot,
    operands,
    place,
    quoted,
)
from pallas_lsp.rules.shared.gpu_sizes import shape_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("tcgen05", "SMEM and TMEM")
SITES = (
    (PRIMITIVES, "_tcgen05_mma_abstract_eval"),
    (PRIMITIVES, "_async_load_tmem_abstract_eval"),
    (PRIMITIVES, "_async_store_tmem_abstract_eval"),
    (PRIMITIVES, "_async_copy_to_tmem_abstract_eval"),
    (PRIMITIVES, "_async_copy_smem_to_tmem_abstract_eval"),
)
# What jax says, the operand's name, and where it has to be.
_TOLD = (
    (r"^Accumulator must be a TMEM", "acc", "TMEM", "`tcgen05_mma` accumulates"),
    (r"^LHS must be a TMEM/SMEM", "a", "SMEM or TMEM", "`tcgen05_mma` reads its left operand"),
    (r"^RHS must be an SMEM", "b", "SMEM", "`tcgen05_mma` reads its right operand"),
    (r"^a_scale must be a TMEM", "a_scale", "TMEM", "`tcgen05_mma` reads scales"),
    (r"^b_scale must be a TMEM", "b_scale", "TMEM", "`tcgen05_mma` reads scales"),
    (r"^Async load only supports TMEM", "ref", "TMEM", "`async_load_tmem` loads"),
    (r"^Async store only supports TMEM", "ref", "TMEM", "`async_store_tmem` stores"),
    (r"source must be an SMEM", "smem_ref", "SMEM", "this copies"),
    (r"target must be a TMEM", "tmem_ref", "TMEM", "this copies"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, PRIMITIVES, *[function for _, function in SITES]):
        return None
    for pattern, name, wanted, does in _TOLD:
        if re.search(pattern, fault.message):
            return _found(fault, context, name, wanted, does)
    return None


def _found(fault: Fault, context: Context, name: str, wanted: str, does: str) -> Finding:
    known = operands(fault)
    given = known.get(name) or known.get("source" if name == "smem_ref" else "_src", None) or _only(known, name)
    source = quoted(context, fault, name, f"`{name}`")
    where = f"is in {given.space.upper()}" if given is not None and given.space not in ("value", "") else "is no ref"
    if wanted != "SMEM" and "copies" not in does:
        text = f"{source} {where}, but {does} {'in' if name == 'acc' else 'from'} {wanted}."
    else:
        text = f"{source} {where}, but {does} {'to' if name == 'tmem_ref' else 'from'} {wanted}."
    if "stores" in does:
        text = f"{source} {where}, but {does} to {wanted}: store to other refs with `ref[...] = value`."
    elif "loads" in does:
        text = f"{source} {where}, but {does} from {wanted}: read other refs with `ref[...]`."
    related = given.related(context, "It is allocated here.") if given is not None else ()
    fixes = list(_fixes(fault, context, name, given)) if given is not None else []
    return finding(__name__, fault, context, place(context, fault, name), text, related, fixes)


def _only(known: dict[str, Operand], name: str) -> Operand | None:
    refs = [o for o in known.values() if o.space in ("smem", "gmem", "tmem")]
    return refs[0] if len(refs) == 1 or (name == "smem_ref" and refs) else refs[-1] if refs else None


def _fixes(fault: Fault, context: Context, name: str, given: Operand) -> Iterator[Fix | None]:
    call = call_spot(context, fault)
    if name == "acc" and given.space == "smem" and given.allocation is not None:
        made = given.allocation.spot(context)
        if made is not None:
            yield _into_tmem(context, fault, made, given)
    elif name == "ref" and call is not None and isinstance(call.node, ast.Call):
        ref = argument(context, fault, "ref")
        if ref is None or given.space == "value":
            return
        edits = Editor(call.path, call.syntax)
        value = call.syntax.arguments(call.node).get(1, "value")
        atom = f"{ref.source}[...]" if ".at[" not in ref.source else ref.source.replace(".at[", "[", 1)
        statement = call.syntax.statement(call.node)
        if value is not None and isinstance(statement, ast.Expr):
            edits.replace(statement, f"{atom} = {call.syntax.source(value)}")
            yield suggested("Store it with an index", edits)
        elif value is None:
            edits.replace(call.node, atom)
            yield suggested("Read it with an index", edits)
    elif name in ("smem_ref", "tmem_ref") and call is not None and isinstance(call.node, ast.Call):
        if len(call.node.args) != 2:
            return
        edits = Editor(call.path, call.syntax)
        first, second = call.node.args
        edits.replace(first, call.syntax.source(second))
        edits.replace(second, call.syntax.source(first))
        yield suggested("Swap the two refs", edits)


def _into_tmem(context: Context, fault: Fault, made: Spot, given: Operand) -> Fix | None:
    """The accumulator allocated in TMEM, and loaded from there where it is read."""
    ref = argument(context, fault, "acc")
    if ref is None or not isinstance(made.node, ast.Call) or not isinstance(ref.node, ast.Name):
        return None
    editors = {spot.path: Editor(spot.path, spot.syntax) for spot in (made, ref)}
    tmem = editors[made.path].spell(f"{PLGPU}.TMEM", made.node, ALIAS)
    load = editors[ref.path].spell(f"{PLGPU}.async_load_tmem", ref.node, ALIAS)
    wait = editors[ref.path].spell(f"{PLGPU}.wait_load_tmem", ref.node, ALIAS)
    if tmem is None or load is None or wait is None or (shape_of(made) is None and not made.node.args):
        return None
    editors[made.path].replace(made.node.func, tmem)
    keyword = next((k for k in made.node.keywords if k.arg == "transforms"), None)
    if keyword is not None:
        editors[made.path].remove_argument(made.node, keyword)
    if given.bits < 32:
        editors[made.path].insert_argument(made.node, "packed=False")
    for use in ref.syntax.uses(ref.node):
        parent = ref.syntax.parent(use)
        if isinstance(parent, ast.Subscript) and parent.value is use and isinstance(parent.ctx, ast.Load):
            editors[ref.path].replace(parent, f"{load}({use.id})")
            statement = ref.syntax.statement(parent)
            if statement is not None:
                editors[ref.path].add_after(statement, f"{wait}()")
    return suggested("Allocate it in TMEM, and load it from there where it is read", *editors.values())
