"""
## What it does
Finds shared memory and TMEM that is read before anything was written to it, and products of `tcgen05_mma` that are
added to an accumulator which has no value yet.

## Why it is wrong
Memory that a kernel allocates holds what was left there. `tcgen05_mma` adds to its accumulator unless
`accumulate=False` says otherwise, so that the first product is added to garbage.

## Example
```python
@pl.loop(0, steps)
def _(k):
    plgpu.tcgen05_mma(acc, a_smem, b_smem, barrier)
    plgpu.barrier_wait(barrier)
```

## Use instead
```python
@pl.loop(0, steps)
def _(k):
    plgpu.tcgen05_mma(acc, a_smem, b_smem, barrier, accumulate=k > 0)
    plgpu.barrier_wait(barrier)
```

## Fix safety
Safe: the first product is stored instead of added. Nothing is offered for other reads.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12. Memory that some other condition writes is left alone.

## Source
The kernel followed step by step; jax looks at it in no version.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.gpu_operands import called
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, silent_finding, spot_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("SMEM and TMEM", "tcgen05")
OF_ORDER = True
_MMA = "tcgen05_mma"
_PARAMETERS = {
    (_MMA, "acc"): (0, "acc"),
    (_MMA, "a"): (1, "a"),
    (_MMA, "b"): (2, "b"),
    ("wgmma", "a"): (1, "a"),
    ("wgmma", "b"): (2, "b"),
    ("copy_smem_to_gmem", "source"): (0, "src"),
    ("async_copy_smem_to_tmem", "source"): (0, "smem_ref"),
    ("async_load_tmem", "ref"): (0, "src"),
    ("load", "ref"): (0, "src"),
}
"""Which parameter of a function of Pallas is read, by the name of the function and the role of the operand."""


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "memory-never-written"):
        return None
    read = spot_of(fault, context)
    role = str(fault.facts.get("role"))
    name = _name(read, role)
    where = narrow(read) if read is not None else context.locate(fault)
    memory = "TMEM" if fault.facts.get("memory_space") == "tmem" else "shared memory"
    adds = read is not None and _is_product(read) and role == "acc"
    if adds:
        text = (
            f"This product is added to {name}, but nothing was stored there before: {memory} starts with garbage. The "
            "first product needs `accumulate=False`."
        )
    else:
        text = f"{name} is read here, but nothing was written to it before: {memory} starts with garbage."
    looped = bool(fault.facts.get("looped"))
    fix = _store(read, looped=looped) if adds and read is not None else None
    return silent_finding(__name__, fault, context, where, text, (), [fix])


def _is_product(spot: Spot) -> bool:
    return isinstance(spot.node, ast.Call) and called(spot.syntax, spot.node) == _MMA


def _name(spot: Spot | None, role: str) -> str:
    """What is read, as the source names it."""
    node = spot.node if spot is not None else None
    if spot is None or node is None:
        return "This memory"
    if isinstance(node, ast.Call):
        parameter = _PARAMETERS.get((called(spot.syntax, node), role))
        given = spot.syntax.arguments(node).get(*parameter) if parameter else None
        return f"`{short(spot.syntax.source(given), 40)}`" if given is not None else "an operand of this"
    if isinstance(node, ast.Subscript):
        node = node.value
    return f"`{short(spot.syntax.source(node), 40)}`" if isinstance(node, ast.Name | ast.Attribute) else "This memory"


def _store(spot: Spot, *, looped: bool) -> Fix | None:
    """``accumulate``: false, or in a loop only after its first step."""
    call = spot.node
    if not isinstance(call, ast.Call) or any(each.arg is None for each in call.keywords):
        return None
    step = _step(spot.syntax, call)
    if (looped and step is None) or step == "":
        return None
    text = f"{step} > 0" if step else "False"
    edits = Editor(spot.path, spot.syntax)
    given = spot.syntax.argument(call, None, "accumulate")
    if given is not None:
        if not isinstance(given, ast.Constant):
            return None
        edits.replace(given, text)
    else:
        last = max((*call.args, *(each.value for each in call.keywords)), key=lambda each: spot.syntax.span(each)[1])
        edits.insert(spot.syntax.span(last)[1], f", accumulate={text}")
    return safe(f"Start the sum: `accumulate={text}`", edits)


def _step(syntax: Syntax, call: ast.Call) -> str | None:
    """The name that counts the steps of the loop around a call from 0; empty for a loop without one."""
    node: ast.AST | None = call
    while node is not None and not isinstance(node, FUNCTIONS):
        if isinstance(node, ast.While):
            return ""
        if isinstance(node, ast.For):
            counts = isinstance(node.iter, ast.Call) and called(syntax, node.iter) == "range"
            from_zero = isinstance(node.iter, ast.Call) and len(node.iter.args) == 1
            return node.target.id if counts and from_zero and isinstance(node.target, ast.Name) else ""
        node = syntax.parent(node)
    if not isinstance(node, ast.FunctionDef) or not node.args.args:
        return None
    loops = [each for each in node.decorator_list if isinstance(each, ast.Call) and called(syntax, each) == "loop"]
    loops += [
        each
        for each in ast.walk(syntax.tree)
        if isinstance(each, ast.Call)
        and called(syntax, each) == "fori_loop"
        and len(each.args) > 2
        and isinstance(each.args[2], ast.Name)
        and each.args[2].id == node.name
    ]
    starts = [loop.args[0] for loop in loops if len(loop.args) > 1]
    if len(starts) == 1 and isinstance(starts[0], ast.Constant) and starts[0].value == 0:
        return node.args.args[0].arg
    return None
