"""A scope's allocations made scratch types of the launch: the memory is there from the start."""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.accumulators import unique_name
from pallas_lsp.rules.shared.functions import add_parameters
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.uses import Form, scoped_use
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax


def hoisted(fault: Fault, context: Context, spot: Spot) -> Editor | None:
    """Edits that give the kernel's body the refs that a ``run_scoped`` allocates, and call the scope's body with them.

    Only where all stands in one file and the types can be written at the launch.
    """
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    use = scoped_use(spot)
    if launch is None or body is None or use is None or use.form is not Form.DIRECT:
        return None
    if not spot.path == launch.spot.path == body[0] or not isinstance(use.body, ast.Name | ast.Lambda):
        return None
    syntax, call, function = spot.syntax, spot.node, body[2]
    assert isinstance(call, ast.Call)
    given = list(call.args[1:])
    named = [k for k in call.keywords if k.arg != "collective_axes"]
    types = [*given, *(k.value for k in named)]
    if not types or any(isinstance(t, ast.Starred) or not _global(syntax, t) for t in types):
        return None
    if any(k.arg is None for k in named) or isinstance(function, ast.Lambda):
        return None
    wanted = _parameter_names(syntax, use.body, len(given)) + [str(k.arg) for k in named]
    names = [unique_name(syntax, function.body[0], name) if name in _names(function) else name for name in wanted]
    edits = Editor(spot.path, syntax)
    added = add_parameters(syntax, function, names)
    if added is None or len(set(names)) != len(names):
        return None
    edits.change(*added)
    arguments = [*names[: len(given)], *(f"{k.arg}={n}" for k, n in zip(named, names[len(given) :], strict=True))]
    head = syntax.source(use.body)
    head = f"({head})" if isinstance(use.body, ast.Lambda) else head
    edits.replace(call, f"{head}({', '.join(arguments)})")
    return edits if _scratch(edits, launch, [syntax.source(t) for t in types]) else None


def _scratch(edits: Editor, launch: Launch, types: list[str]) -> bool:
    scratch = launch.argument("scratch_types", "scratch_shapes")
    if scratch is None:
        edits.insert_argument(launch.call, f"{launch.scratch}=[{', '.join(types)}]")
        return True
    value = scratch.syntax.value(scratch.node)
    if scratch.path != edits.path or not isinstance(value, ast.List | ast.Tuple):
        return False
    if not value.elts:
        edits.replace(value, f"[{', '.join(types)}]")
    else:
        edits.insert(edits.whole(value.elts[-1])[1], ", " + ", ".join(types))
    return True


def _parameter_names(syntax: Syntax, body: ast.expr, count: int) -> list[str]:
    function = syntax.callee(body)
    known = [p.arg for p in [*function.args.posonlyargs, *function.args.args]] if function is not None else []
    return [known[i] if i < len(known) else f"scratch_{i}" for i in range(count)]


def _names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {a.arg for a in every if a is not None}


def _global(syntax: Syntax, node: ast.expr) -> bool:
    """Whether every name of an expression is one of the whole file."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found = syntax.scope(each).lookup(each.id)
            if found is not None and found[0].node is not syntax.tree:
                return False
    return True
