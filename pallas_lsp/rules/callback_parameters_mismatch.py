"""
## What it does
Finds functions given to `pl.run_scoped`, `pl.when`, `jax.lax.fori_loop`, `while_loop`, `scan`, `cond` and pipelines
that take another number of arguments than they are called with.

## Why it is wrong
Each of these calls its function in its own way: `run_scoped` with one ref for each allocation, `fori_loop` with the
index and the value handed on, `scan` with the value handed on and an element, `cond` with its operands, `when` with
nothing, `plgpu.emit_pipeline` with the grid's indices and one ref for each spec.

## Example
```python
jax.lax.fori_loop(0, n, lambda acc: acc + 1, 0)
```

## Use instead
```python
jax.lax.fori_loop(0, n, lambda i, acc: acc + 1, 0)
```

## Fix safety
The fixes, parameters added or unused ones removed, are suggestions.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Python's own TypeError where these functions call what they were given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.arity import Arity, arity_of, called_by
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import (
    add_parameters,
    fresh_names,
    head_location,
    positional,
    remove_parameter,
    unused,
)
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import and_list, count_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS, Function

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches",)
SPECIFICITY = 45


@dataclass(frozen=True)
class _Kind:
    """How a function calls what it is given.  ``front``: the parameter that users forget stands first."""

    said: str
    gets: str
    names: tuple[str, ...]
    front: bool = False


_LOOPS = "jax/_src/lax/control_flow/loops.py"
_CONDS = "jax/_src/lax/control_flow/conditionals.py"
_KINDS: dict[tuple[str, str], _Kind] = {
    ("jax/_src/pallas/primitives.py", "run_scoped"): _Kind(
        "pl.run_scoped", "one ref for each allocation", ("scratch_ref", "scratch_ref_2", "scratch_ref_3")
    ),
    (_LOOPS, "scanned_fun"): _Kind("jax.lax.fori_loop", "the index and the value handed on", ("i", "j"), True),
    (_LOOPS, "while_body_fun"): _Kind("jax.lax.fori_loop", "the index and the value handed on", ("i", "j"), True),
    (_LOOPS, "fori_loop"): _Kind("jax.lax.fori_loop", "the index and the value handed on", ("i", "j"), True),
    (_LOOPS, "_create_jaxpr"): _Kind("the loop", "the value handed on, and for `scan` an element", ("x", "y")),
    (_LOOPS, "scan"): _Kind("jax.lax.scan", "the value handed on and an element", ("x", "y")),
    (_LOOPS, "while_loop"): _Kind("jax.lax.while_loop", "the value handed on", ("carry",)),
    (_CONDS, "cond"): _Kind("the branch", "the operands, and under `pl.when` nothing", ("operand", "operand_2")),
    (_CONDS, "_cond"): _Kind("the branch", "the operands, and under `pl.when` nothing", ("operand", "operand_2")),
    (_CONDS, "switch"): _Kind("jax.lax.switch", "the operands", ("operand", "operand_2")),
    ("jax/_src/pallas/mosaic_gpu/pipeline.py", "loop_body"): _Kind(
        "plgpu.emit_pipeline", "the grid's indices, then one ref for each spec", ("indices",), True
    ),
    ("jax/_src/pallas/mosaic/pipeline.py", "loop_body"): _Kind(
        "pltpu.emit_pipeline", "one ref for each spec", ("ref", "ref_2")
    ),
    ("jax/_src/pallas/helpers.py", "_wrapped"): _Kind("pl.when", "nothing", ()),
}


def judge(fault: Fault, context: Context) -> Finding | None:
    arity = arity_of(fault)
    if arity is None or fault.capture is None:
        return None
    kind = next((k for (file, name), k in _KINDS.items() if called_by(fault, {file: (name,)})), None)
    line = line_of(fault, context)
    if kind is None or line is None:
        return None
    function = _function(line, arity)
    if function is None:
        return None
    if kind.said == "pl.run_scoped" and (apart := _called_apart(line)) is not None:
        message = (
            "`pl.run_scoped` takes what it allocates as its own arguments and runs the body at once: it returns no "
            "function as `pl.run_state` does."
        )
        return finding(__name__, fault, context, line.location, message, (), [_joined(line, apart)])
    location = head_location(line.path, line.syntax, function)
    taken = len(positional(function))
    given = arity.given if arity.given is not None else taken - len(arity.missing)
    if arity.keywords:
        message = f"{_named(function)} has no parameter `{arity.keywords[0]}`, but is called with one of that name."
        keyword = _keyword(line, arity.keywords[0])
        if keyword is None:
            return finding(__name__, fault, context, location, message, _related(line))
        related = [Related(location, "This is called.")]
        return finding(__name__, fault, context, line.at(keyword), message, related, _renamed(line, keyword, function))
    said, gets = _said(line, kind), kind.gets
    if said.rpartition(".")[2] == "when":
        gets = "nothing"
    elif gets.startswith("the operands"):
        gets = "the operands"
    message = (
        f"{_named(function)} takes {count_text(taken, 'argument')}, but it is called with {given}: `{said}` "
        f"calls it with {gets}."
    )
    fixes = _fixes(line, function, kind, taken, given)
    return finding(__name__, fault, context, location, message, _related(line), fixes)


def _called_apart(line: Line) -> ast.Call | None:
    """The call of what ``run_scoped(body)`` returns, where it was given nothing to allocate."""
    made, call = line.node, line.syntax.parent(line.node)
    alone = isinstance(made, ast.Call) and len(made.args) == 1 and not made.keywords
    return call if alone and isinstance(call, ast.Call) and call.func is made else None


def _joined(line: Line, call: ast.Call) -> Fix | None:
    """``run_scoped(body)(x)`` as ``run_scoped(body, x)``."""
    if not isinstance(line.node, ast.Call) or not (call.args or call.keywords):
        return None
    first = min(line.syntax.span(each)[0] for each in (*call.args, *call.keywords))
    editor = Editor(line.path, line.syntax)
    editor.change(line.syntax.span(line.node.args[0])[1], first, ", ")
    return suggested("Give it what it allocates", editor)


def _keyword(line: Line, name: str) -> ast.keyword | None:
    call = line.node if isinstance(line.node, ast.Call) else None
    return next((k for k in call.keywords if k.arg == name), None) if call is not None else None


def _renamed(line: Line, keyword: ast.keyword, function: Function) -> Iterator[Fix | None]:
    """The one parameter that nothing is given for may be meant."""
    assert isinstance(line.node, ast.Call) and keyword.arg is not None
    given = {k.arg for k in line.node.keywords}
    free = [p.arg for p in positional(function)[len(line.node.args) - 1 :] if p.arg not in given]
    if len(free) == 1:
        editor = Editor(line.path, line.syntax)
        start, _ = line.syntax.span(keyword)
        editor.change(start, start + len(keyword.arg), free[0])
        yield suggested(f"Give it as `{free[0]}=`", editor)


def _named(function: Function) -> str:
    return "This function" if isinstance(function, ast.Lambda) or function.name == "_" else f"`{function.name}`"


def _said(line: Line, kind: _Kind) -> str:
    call = line.node if isinstance(line.node, ast.Call) else None
    return short(line.syntax.source(call.func), 40) if call is not None else kind.said


def _function(line: Line, arity: Arity) -> Function | None:
    """The function at fault: an argument of the call, or what is decorated."""
    name = arity.function.rpartition(".")[2]
    syntax = line.syntax
    candidates: list[Function] = []
    if isinstance(line.node, ast.Call):
        for argument in (*line.node.args, *(k.value for k in line.node.keywords)):
            for each in argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]:
                found = syntax.callee(each)
                if found is not None:
                    candidates.append(found)
    node: ast.AST | None = line.node
    while node is not None and not isinstance(node, ast.stmt):
        node = syntax.parent(node)
    if isinstance(node, ast.FunctionDef):
        candidates.append(node)
    fitting = [f for f in candidates if ("<lambda>" if isinstance(f, ast.Lambda) else f.name) == name]
    if arity.takes is not None:
        fitting = [f for f in fitting if len(positional(f)) == arity.takes] or fitting
    if fitting:
        return fitting[0]
    defined = [n for n in syntax.nodes if isinstance(n, FUNCTIONS) and getattr(n, "name", "<lambda>") == name]
    return defined[0] if len(defined) == 1 else None


def _related(line: Line) -> Iterator[Related]:
    if isinstance(line.node, ast.Call):
        yield Related(line.at(line.node.func), "It is called by this.")


def _fixes(line: Line, function: Function, kind: _Kind, taken: int, given: int) -> Iterator[Fix | None]:
    syntax = line.syntax
    if function.args.vararg is not None or function.args.defaults:
        return
    parameters = positional(function)
    if taken < given and kind.names:
        names = fresh_names(function, kind.names, given - taken)
        editor = Editor(line.path, syntax)
        if parameters:
            at = syntax.span(parameters[0])[0] if kind.front else syntax.span(parameters[-1])[1]
            editor.insert(at, ", ".join(names) + ", " if kind.front else ", " + ", ".join(names))
        else:
            edit = add_parameters(syntax, function, names)
            if edit is None:
                return
            editor.change(*edit)
        yield suggested(f"Add {and_list([f'`{n}`' for n in names])} to its parameters", editor)
        return
    spare = [p for p in reversed(parameters) if unused(syntax, p)][: taken - given]
    if taken > given and len(spare) == taken - given:
        editor = Editor(line.path, syntax)
        for parameter in spare:
            editor.delete(*remove_parameter(syntax, function, parameter))
        yield suggested(f"Remove {and_list([f'`{p.arg}`' for p in spare])} from its parameters", editor)
