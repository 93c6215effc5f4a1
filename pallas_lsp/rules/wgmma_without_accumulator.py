"""
## What it does
Finds calls of `plgpu.wgmma` whose first argument is no accumulator: a ref in GMEM, SMEM or TMEM, or one that
`pl.run_state` made of a plain array; and calls where the accumulator stands in the place of an operand.

## Why it is wrong
Hopper's wgmma accumulates in registers. The ref that stands for them is allocated with `plgpu.ACC(shape, dtype)` by
`pl.run_scoped` and lives inside that scope; one that starts with a value is `plgpu.ACC.init(value)`, given to
`pl.run_state`. Results in TMEM are Blackwell's, where the product is
`plgpu.tcgen05_mma`.

## Example
```python
plgpu.wgmma(o_gmem, a_smem, b_smem)
```

## Use instead
```python
def product(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref[...]

o_gmem[...] = pl.run_scoped(product, plgpu.ACC((64, 128), jnp.float32))
```

## Fix safety
The fix puts the product into a scope and stores its value where it was to be accumulated; it is a suggestion: what
the ref held before is not added. A start value that `pl.run_state` was given as an array becomes that of the
accumulator, which is what the call asks for: that fix is safe.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`_wgmma_ref_effectful_abstract_eval`, `wgmma_accumulator_load` and `wgmma_accumulator_store` in
`jax/_src/pallas/mosaic_gpu/primitives.py`, "Expected WGMMAAbstractAccumulatorRef".
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared import NotPossible
from pallas_lsp.rules.shared.accumulators import KIND, cast, needs_cast, spell_accumulator, unique_name
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.gpu_mma import dtype_text
from pallas_lsp.rules.shared.gpu_operands import (
    PRIMITIVES,
    Operand,
    argument,
    call_spot,
    operands,
    place,
    quoted,
    shape_text,
)
from pallas_lsp.rules.shared.places import Spot, call_at
from pallas_lsp.rules.shared.uses import PALLAS, parameter, state_use, state_value
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("wgmma", "accumulators")
SPECIFICITY = 56
SITES = (
    (PRIMITIVES, "_wgmma_ref_effectful_abstract_eval"),
    (PRIMITIVES, "wgmma_accumulator_load"),
    (PRIMITIVES, "wgmma_accumulator_store"),
    (PRIMITIVES, "_wgmma_accumulator_store_abstract_eval"),
)
_SPACES = {"gmem": "GMEM", "smem": "SMEM", "tmem": "TMEM"}


def judge(fault: Fault, context: Context) -> Finding | None:
    swapped = _swapped(context, fault)
    if swapped is not None:
        return swapped
    functions = [function for _, function in SITES]
    if not raised_in(fault, PRIMITIVES, *functions) or not fault.exception.endswith("TypeError"):
        return None
    acc = operands(fault).get("acc")
    where = f" in {_SPACES[acc.space]}" if acc is not None and acc.space in _SPACES else ""
    name = quoted(context, fault, "acc", "The accumulator")
    start = _start(context, fault)
    if start is not None:
        value = short(start.source, 40)
        text = (
            f"{name} starts as the array `{value}`, but `wgmma` accumulates in registers: the start value of an "
            f"accumulator is `plgpu.ACC.init({value})`."
        )
        used = Related(place(context, fault, "acc"), "It accumulates here.")
        return finding(__name__, fault, context, start.location, text, [used], [_initialised(context, start)])
    text = (
        f"{name} is a ref{where}, but `wgmma` accumulates in registers: it takes a `plgpu.ACC(...)` of `pl.run_scoped`."
    )
    if acc is not None and acc.space == "tmem":
        text += " Products into TMEM are `plgpu.tcgen05_mma` (Blackwell)."
    related = acc.related(context, "It is allocated here.") if acc is not None else ()
    return finding(__name__, fault, context, place(context, fault, "acc"), text, related, [_fix(context, fault, acc)])


def _swapped(context: Context, fault: Fault) -> Finding | None:
    """The accumulator stands where an operand should."""
    found = operands(fault)
    wrong = next((name for name in ("a", "b") if _is_accumulator(found.get(name))), None)
    if wrong is None or _is_accumulator(found.get("acc")):
        return None
    call = call_spot(context, fault, "wgmma")
    first, given = argument(context, fault, "acc"), argument(context, fault, wrong)
    if call is None or first is None or given is None:
        return None
    text = (
        f"`wgmma` takes the accumulator first, then the operands: `{short(given.source, 40)}` is the accumulator, and "
        f"`{short(first.source, 40)}` stands in its place."
    )
    editor = Editor(call.path, call.syntax)
    editor.replace(first.node, given.source)
    editor.replace(given.node, first.source)
    related = found[wrong].related(context, "The accumulator is allocated here.")
    return finding(__name__, fault, context, first.location, text, related, [suggested("Swap the two", editor)])


def _is_accumulator(operand: Operand | None) -> bool:
    return operand is not None and operand.allocation is not None and operand.allocation.kind == KIND


def _start(context: Context, fault: Fault) -> Spot | None:
    """The array that ``pl.run_state`` made the ref of, where the ref is the one that its body gets."""
    given = argument(context, fault, "acc")
    if given is None or not isinstance(given.node, ast.Name):
        return None
    for index in range(len(fault.frames)):
        spot = call_at(context, fault.frames, index)
        use = state_use(spot) if spot is not None else None
        value = state_value(use) if use is not None else None
        if use is None or value is None or isinstance(value, ast.Tuple | ast.List | ast.Dict | ast.Starred):
            continue
        received = parameter(use, 0)
        if received is not None and use.spot.path == given.path and received.arg == given.node.id:
            return use.spot.at(value)
    return None


def _initialised(context: Context, start: Spot) -> Fix | None:
    """The array as the start value of an accumulator."""
    editor = Editor(start.path, start.syntax)
    make = spell_accumulator(editor, start.node)
    if make is None:
        return None
    before, after = f"{make}.init(", ")"
    if needs_cast(context, start.syntax, start.node):
        try:
            opening, closing = cast(editor, start.node)
        except NotPossible:
            return None
        before, after = before + opening, closing + after
    first, last = start.syntax.span(start.node)
    editor.insert(first, before)
    editor.insert(last, after)
    return safe(f"Start the accumulator with it: `{make}.init({short(start.source, 30)})`", editor)


def _fix(context: Context, fault: Fault, acc: Operand | None) -> Fix | None:
    """The product in a scope of its own, its value stored into the ref that was given."""
    call, given = call_spot(context, fault, "wgmma"), argument(context, fault, "acc")
    if call is None or given is None or acc is None or acc.shape is None or acc.space not in ("gmem", "smem"):
        return None
    syntax = call.syntax
    statement = syntax.statement(call.node)
    if not isinstance(statement, ast.Expr) or statement.value is not call.node:
        return None
    if syntax.range(statement).start.line != syntax.range(statement).end.line:
        return None
    edits = Editor(call.path, syntax)
    make, scoped = spell_accumulator(edits, call.node), edits.spell(f"{PALLAS[0]}.run_scoped", call.node, PALLAS)
    dtype = dtype_text(edits, call.node, acc.dtype)
    if make is None or scoped is None or dtype is None:
        return None
    name = unique_name(syntax, call.node, "acc_ref")
    function = unique_name(syntax, call.node, "product")
    line = syntax.lines[syntax.range(statement).start.line]
    indent = line[: len(line) - len(line.lstrip())]
    start, end = syntax.span(given.node)
    own_start, own_end = syntax.span(call.node)
    product = syntax.text[own_start:start] + name + syntax.text[end:own_end]
    newline = syntax.lines.newline
    target = f"{given.source}[...]" if isinstance(given.node, ast.Name) else given.source.replace(".at[", "[", 1)
    lines = [
        f"def {function}({name}):",
        f"{indent}    {product}",
        f"{indent}    return {name}[...]",
        "",
        f"{indent}{target} = {scoped}({function}, {make}({shape_text(acc.shape)}, {dtype}))",
    ]
    edits.replace(statement, newline.join(lines))
    return suggested("Accumulate in a scope with `plgpu.ACC` and store its value", edits)
