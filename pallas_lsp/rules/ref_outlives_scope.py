"""
## What it does
Finds refs that leave the scope which allocates them: an accumulator or a buffer of `pl.run_scoped` that its body
returns or hands out, and that is used after it.

## Why it is wrong
`pl.run_scoped` gives its memory back when its body ends. A ref that leaves it names memory that belongs to nothing or
to something else by then. Where the ref is a result of the scope jax says nothing, and the kernel reads garbage; where
it is only kept in a name of Python's, jax fails with an error about itself. What may leave the scope is a value.

## Example
```python
def compute(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref

acc = pl.run_scoped(compute, plgpu.ACC((64, 64), jnp.float32))
o_gmem[...] = acc[...] * 0.5
```

## Use instead
```python
def compute(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref[...]

acc = pl.run_scoped(compute, plgpu.ACC((64, 64), jnp.float32))
o_gmem[...] = acc * 0.5
```

## Fix safety
Safe: the value is read while its memory is still there, and the reads after the scope become uses of that value.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`run_scoped_p` in `jax/_src/pallas/primitives.py`: its results may be refs, and no version refuses them.
`make_jaxpr_effects` in `jax/_src/interpreters/partial_eval.py`, "does not have a corresponding jaxpr input"; from jax
0.11 on it fails while it writes that message, in `_shift_arg_names` (`jax/_src/core.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pallas_lsp.model import Fault, Finding, Fix, Related, Severity
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.rules.shared.launches import born, function_at
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related, silent_finding, spot_of
from pallas_lsp.rules.shared.uses import Use, parameter, scoped_use
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SITES = (
    ("jax/_src/interpreters/partial_eval.py", "make_jaxpr_effects"),
    ("jax/_src/core.py", "_shift_arg_names"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "ref-outlives-scope"):
        return _raised(fault, context)
    call = spot_of(fault, context)
    returned = _returned(fault, context, call)
    uses = related(fault, context, "Here its memory belongs to something else.")
    name = f"`{short(returned.source, 40)}`" if returned is not None else "A ref of this scope"
    where = returned.location if returned is not None else narrow(call) if call is not None else context.locate(fault)
    value = f", `{short(returned.source, 40)}[...]`" if returned is not None else ""
    text = (
        f"{name} is a ref ({fault.facts.get('ref')}) whose memory is given back when its `pl.run_scoped` ends: return "
        f"the value that is in it instead{value}."
    )
    fixes = [_fix(returned, call)] if returned is not None and call is not None else []
    severity = Severity.ERROR if uses else Severity.WARNING
    return silent_finding(__name__, fault, context, where, text, uses, fixes, severity)


def _raised(fault: Fault, context: Context) -> Finding | None:
    """A ref that jax itself met outside of the program that has it."""
    unknown = fault.facts.get("unknown_ref")
    if not isinstance(unknown, Mapping) or not unknown.get("is_ref"):
        return None
    used = born(context, unknown.get("frames"))
    allocation = unknown.get("allocation")
    made = born(context, allocation.get("frames")) if isinstance(allocation, Mapping) else None
    call = _scope(made) if made is not None else None
    returned = _returned_of(call, made) if call is not None and made is not None else None
    kept = _kept(call, made) if returned is None and call is not None and made is not None else None
    place = returned or kept or used
    if place is None:
        return None
    what = f"`{short(made.source, 50)}`" if made is not None else "a scope that ended"
    text = (
        f"`{short(place.source, 40)}` is the ref of {what}, which is freed when the body of its `pl.run_scoped` ends: "
        "return its value, `[...]`, not the ref."
    )
    later = [] if used is None or used is place else [Related(used.location, "It is used here, after its scope.")]
    fixes = [_fix(returned, call)] if returned is not None and call is not None else []
    return silent_finding(__name__, fault, context, place.location, text, later, fixes, Severity.ERROR)


def _scope(made: Spot) -> Spot | None:
    """The call of run_scoped that an allocation stands in."""
    for parent in made.syntax.ancestors(made.node):
        if isinstance(parent, ast.stmt):
            return None
        if isinstance(parent, ast.Call) and scoped_use(made.at(parent)) is not None:
            return made.at(parent)
    return None


def _returned_of(call: Spot, made: Spot) -> Spot | None:
    """Where the body of a scope returns the ref of an allocation."""
    use, found = scoped_use(call), _received(call, made)
    if use is None or use.function is None:
        return None
    for value in _results(use.syntax, use.function) if found is not None else ():
        for node in value.elts if isinstance(value, ast.Tuple | ast.List) else [value]:
            if found is not None and isinstance(node, ast.Name) and node.id == found.arg:
                return made.at(node)
    return None


def _received(call: Spot, made: Spot) -> ast.arg | None:
    """The parameter of the body of a scope that gets the ref of an allocation."""
    use = scoped_use(call)
    if use is None or use.function is None or not isinstance(call.node, ast.Call):
        return None
    index = next((i for i, a in enumerate(call.node.args) if made.node in ast.walk(a)), None)
    name = next((k.arg for k in call.node.keywords if made.node in ast.walk(k.value)), None)
    return parameter(use, (index or 1) - 1, name) if index is not None or name is not None else None


def _kept(call: Spot, made: Spot) -> Spot | None:
    """Where the body of a scope puts the ref of an allocation that is still there after it."""
    found = _received(call, made)
    use = scoped_use(call)
    function = use.function if use is not None else None
    if found is None or function is None or isinstance(function, ast.Lambda):
        return None
    syntax = call.syntax
    outer = {
        name
        for node in syntax.own_nodes(function)
        if isinstance(node, ast.Nonlocal | ast.Global)
        for name in node.names
    }
    for node in syntax.own_nodes(function):
        if isinstance(node, ast.Name) and node.id == found.arg and isinstance(node.ctx, ast.Load):
            parent = syntax.parent(node)
            holder = parent if isinstance(parent, ast.Tuple | ast.List | ast.Dict) else node
            around = syntax.parent(holder)
            if isinstance(around, ast.Assign) and around.value is holder:
                if any(_outlives(target, outer) for target in around.targets):
                    return made.at(node)
            elif isinstance(around, ast.Call) and holder in around.args and isinstance(around.func, ast.Attribute):
                alone = isinstance(syntax.parent(around), ast.Expr)
                if alone and around.func.attr in _KEEPING:
                    return made.at(node)
    return None


_KEEPING = ("append", "add", "insert", "extend", "setdefault", "appendleft")
"""Methods of Python's collections that keep what they are given."""


def _outlives(target: ast.expr, outer: set[str]) -> bool:
    return isinstance(target, ast.Attribute | ast.Subscript) or (isinstance(target, ast.Name) and target.id in outer)


def _results(syntax: Syntax, function: Function) -> list[ast.expr]:
    if isinstance(function, ast.Lambda):
        return [function.body]
    return [r.value for r in syntax.returns(function) if r.value is not None]


def _returned(fault: Fault, context: Context, call: Spot | None) -> Spot | None:
    """The parameter that the scope's body returns, where it returns it."""
    name, _, place = str(fault.facts.get("body", "")).rpartition(" at ")
    path, _, line = place.rpartition(":")
    syntax = context.syntax(path)
    use = scoped_use(call) if call is not None else None
    near = use.body if use is not None and isinstance(use.body, ast.expr) and call is not None else None
    inside = near if call is not None and call.path == path else None
    function = function_at(syntax, int(line), name, inside) if syntax is not None and line.isdigit() else None
    if syntax is None or function is None:
        return None
    names = {p.arg for p in _parameters(use, function, fault.facts.get("allocated") or ())}
    every = {p.arg for p in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]}
    value = next(iter(reversed(_results(syntax, function))), None)
    elements = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    for wanted in (names, every):
        for element in elements:
            if isinstance(element, ast.Name) and element.id in wanted:
                return Spot(path, syntax, element)
    return Spot(path, syntax, value) if value is not None and len(elements) == 1 else None


def _parameters(use: Use | None, function: Function, allocated: list[int] | tuple[int, ...]) -> list[ast.arg]:
    if use is None or use.function is not function:
        return []
    found = [parameter(use, position) for position in allocated]
    return [each for each in found if each is not None]


def _fix(returned: Spot, call: Spot) -> Fix | None:
    """``[...]`` after the returned name, and taken away from what the call's result is assigned to."""
    if not isinstance(returned.node, ast.Name) or returned.path != call.path:
        return None
    syntax = call.syntax
    edits = Editor(returned.path, syntax)
    edits.insert(syntax.span(returned.node)[1], "[...]")
    parent = syntax.parent(call.node)
    if isinstance(parent, ast.Subscript) and parent.value is call.node and _whole(parent):
        edits.delete(syntax.span(call.node)[1], syntax.span(parent)[1])
    target = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    group = syntax.parent(returned.node)
    if isinstance(group, ast.Tuple | ast.List) and isinstance(target, ast.Tuple | ast.List):
        position = group.elts.index(returned.node)
        target = target.elts[position] if len(target.elts) == len(group.elts) else None
    if isinstance(target, ast.Name):
        for use in syntax.uses(target):
            outer = syntax.parent(use)
            if isinstance(outer, ast.Subscript) and outer.value is use and _whole(outer):
                edits.delete(syntax.span(use)[1], syntax.span(outer)[1])
    return safe(f"Return the value: `{syntax.source(returned.node)}[...]`", edits)


def _whole(node: ast.Subscript) -> bool:
    index = node.slice
    if isinstance(index, ast.Constant):
        return index.value is Ellipsis
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice) and p.lower is None and p.upper is None and p.step is None for p in parts)
