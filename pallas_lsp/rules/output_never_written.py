"""
## What it does
Finds outputs of which a part belongs to no step of the grid: a grid that was rounded down, one with too few steps, an
index map that leaves blocks out. And outputs that the body never stores to, or only under conditions that are false in
each step that has one of their blocks.

## Why it is wrong
What no step writes holds garbage after the kernel. `rows // BLOCK` drops the rest: with 1000 rows and blocks of 128
the last 104 rows belong to no step. The last block may be partial; what is past the end is not written.

## Example
```python
grid=(rows // BLOCK,)
```

## Use instead
```python
grid=(pl.cdiv(rows, BLOCK),)
```

## Fix safety
Rounding up is safe, and so is a store in place of an assignment to the ref's name; another number of steps is a
suggestion, and so is the last step in a condition that never holds.

## Applies to
All backends; jax 0.10, 0.11 and 0.12. Outputs that an input is aliased to keep what the input had, and are left alone;
so are those of which only the written part is used.

## Source
Index maps evaluated for each step of the grid; jax itself does not look at what they cover.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding, Fix, Location, Related, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.block_sizes import block_of
from pallas_lsp.rules.shared.findings import safe, suggested
from pallas_lsp.rules.shared.functions import head_location
from pallas_lsp.rules.shared.grid_sizes import blocks_of, fitted, rounded_up
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import (
    PALLAS,
    checked,
    grid_element,
    map_element,
    narrow,
    parameter_at,
    silent_finding,
    spot_of,
)
from pallas_lsp.rules.shared.start_statements import when_of
from pallas_lsp.rules.shared.uncalled import in_body
from pallas_lsp.rules.shared.wording import shape_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch",)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "output-never-written") or in_body(fault, context):
        return None
    if fault.facts.get("stores") == 0:
        return _unstored(fault, context)
    if fault.facts.get("stores") == "conditional":
        return _unreached(fault, context)
    facts = fault.facts
    dimension, axis = int(facts["dimension"]), facts.get("axis")
    size, needed, length = facts["block"][dimension], facts["needed"], facts["shape"][dimension]
    grid = grid_element(fault, context, axis) if axis is not None else None
    element = map_element(fault, context, facts, dimension)
    block = block_of(fault, context, "outputs", facts["index"])
    launch = launch_of(fault, context)
    whole = launch.argument("grid") if launch is not None and axis is not None else None
    place = grid or whole or element or (block.spot if block is not None else None)
    where = place.location if place is not None else launch.name if launch is not None else context.locate(fault)
    last = f"elements {facts['first']} to {facts['last']}" if facts["last"] > facts["first"] else f"{facts['first']}"
    steps = f"is {facts['grid'][axis]} steps" if grid is not None and axis is not None else "leaves blocks out"
    text = (
        f"`{short(context.source(where), 40)}` {steps}, but output {facts['index']} has {blocks_of(needed, size)} in "
        f"dimension {dimension} ({length} elements): {last} are never written."
    )
    related = []
    out = launch.part("", launch.output) or launch.argument(launch.output) if launch is not None else None
    if out is not None:
        related.append(Related(narrow(out), f"The output has {length} elements in dimension {dimension}."))
    fixes: list[Fix | None] = []
    if grid is not None:
        fixes += [rounded_up(grid) or fitted(grid, needed)]
    return silent_finding(__name__, fault, context, where, text, related, fixes)


def _unstored(fault: Fault, context: Context) -> Finding:
    """The body does nothing with the ref."""
    found = parameter_at(fault, context, fault.facts)
    launch = launch_of(fault, context)
    where = launch.name if launch is not None else context.locate(fault)
    name = f"Output {fault.facts.get('index')}"
    syntax = context.syntax(found[0]) if found is not None else None
    if found is not None and syntax is not None:
        where = Location(found[0], syntax.range(found[2]))
        name = f"`{found[2].arg}` (output {fault.facts.get('index')})"
    elif launch is not None and (body := launch.body()) is not None:
        where = head_location(body[0], body[1], body[2])
    text = f"{name} is never stored to: what the launch returns for it is garbage."
    fixes = []
    rebound = _rebound(syntax, found[1], found[2].arg) if found is not None and syntax is not None else None
    if found is not None and syntax is not None and rebound is not None:
        where = Location(found[0], syntax.range(rebound))
        text += (
            f" This gives the name `{rebound.id}` another meaning: a store needs an index, `{rebound.id}[...] = ...`."
        )
        editor = Editor(found[0], syntax)
        editor.replace(rebound, f"{rebound.id}[...]")
        fixes.append(safe(f"Store into the ref: `{rebound.id}[...] = ...`", editor))
    # One of several may be there for another variant of the kernel, and `_` names what is left unused on purpose.
    meant = found is not None and found[2].arg.startswith("_")
    severity = Severity.WARNING if fault.facts.get("outputs") == 1 and not meant else Severity.HINT
    return silent_finding(__name__, fault, context, where, text, fixes=fixes, severity=severity)


def _unreached(fault: Fault, context: Context) -> Finding:
    """All stores are in branches that no step with some block of the output takes."""
    facts = fault.facts
    store = spot_of(fault, context)
    test = when_of(store) if store is not None else None
    where = test.location if test is not None else context.locate(fault)
    output = f"output {facts['index']}"
    if facts.get("never"):
        text = f"No step of the grid stores to {output}: this condition is false in all of them."
    else:
        text = (
            f"Block {shape_text(facts['at'])} of {output} is never stored to: the condition is false in step "
            f"{shape_text(facts['step'])} of the grid"
        )
        text += " and in all others with that block." if len(facts["grid"]) > len(facts["at"]) else "."
    text += " What the launch returns for it is garbage."
    fixes = [_last_step(test, facts["grid"])] if test is not None and facts.get("never") else []
    others = [Related(narrow(store), "It would be stored here.")] if store is not None and test is not None else []
    return silent_finding(__name__, fault, context, where, text, others, fixes)


def _last_step(test: Spot, grid: list[int]) -> Fix | None:
    """``pl.program_id(2) == n`` -> ``pl.program_id(2) == pl.num_programs(2) - 1``."""
    node = test.node
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return None
    index = test.syntax.value(node.left)
    axis = index.args[0] if isinstance(index, ast.Call) and len(index.args) == 1 else None
    known = isinstance(axis, ast.Constant) and axis.value in range(len(grid))
    if not isinstance(index, ast.Call) or not known or axis is None:
        return None
    if not (test.syntax.called(index) or "").endswith(".program_id"):
        return None
    editor = Editor(test.path, test.syntax)
    count = editor.spell(f"{PALLAS[0]}.num_programs", node, PALLAS)
    if count is None:
        return None
    editor.replace(node.comparators[0], f"{count}({test.syntax.source(axis)}) - 1")
    return suggested("Store it in the last step", editor)


def _rebound(syntax: Syntax, function: Function, name: str) -> ast.Name | None:
    """The only place where a function assigns to the name of a parameter."""
    found = [
        node
        for node in syntax.own_nodes(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    statement = syntax.statement(found[0]) if len(found) == 1 else None
    plain = isinstance(statement, ast.Assign) and statement.targets == found
    return found[0] if plain and function is syntax.function(found[0]) else None
