"""Fixes for refs without a value in ``pl.run_state``: give them one, or allocate them with ``pl.run_scoped``."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import accumulators
from pallas_lsp.rules.shared.places import Spot, Steps, steps
from pallas_lsp.rules.shared.uses import PALLAS, Form, Use, parameter
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

Leaf = tuple[Mapping[str, Any], Spot, Steps]
"""A ref without a value: what is known of it, its expression, and the part of that which could not be followed."""


class NotPossible(Exception):  # noqa: N818 - it is no error: this fix does not apply
    """A fix does not apply here."""


# -- a start value ---------------------------------------------------------------------------------------------------


def start_values(context: Context, leaves: Sequence[Leaf]) -> Fix | None:
    """``ACC(...)`` -> ``ACC.init(jnp.zeros(...))`` for every ref without a value."""
    editors: dict[str, Editor] = {}
    try:
        for leaf, spot, rest in leaves:
            target = _constructor(context, leaf, spot, rest)
            syntax = target.syntax
            editor = editors.setdefault(target.path, Editor(target.path, syntax))
            made = accumulators.constructor(syntax, target.node)
            if made is not None:
                _initialise(context, editor, made)
            else:
                _initialise_other(context, editor, target)
    except NotPossible:
        return None
    edits = tuple(edit for editor in editors.values() for edit in editor.edits())
    what = "the accumulator" if len(leaves) == 1 else "the accumulators"
    return Fix(f"Start {what} at zero with ACC.init(jnp.zeros(...))", edits, Safety.SAFE)


def _constructor(context: Context, leaf: Mapping[str, Any], spot: Spot, rest: Steps) -> Spot:
    """The expression to edit: the constructor call itself where only this use needs it, else the use."""
    if not rest and accumulators.constructor(spot.syntax, spot.node) is not None:
        return spot
    born = accumulators.birth(context, leaf)
    if rest:  # the use says less than the constructor's own place
        if born is None or accumulators.constructor(born.syntax, born.node) is None:
            raise NotPossible
        return born
    if isinstance(spot.node, ast.Call) and born is not None and born.path == spot.path:
        helper = spot.syntax.callee(spot.node.func)
        inside = helper is not None and helper in born.syntax.ancestors(born.node)
        name = spot.node.func
        once = isinstance(name, ast.Name) and len(spot.syntax.uses(name)) == 1
        if inside and once and accumulators.constructor(born.syntax, born.node) is not None:
            return born
    return spot


def _initialise(context: Context, editor: Editor, made: ast.Call) -> None:
    """``ACC(shape, dtype)``: its own arguments become those of ``jnp.zeros``."""
    syntax = editor.syntax
    zeros = editor.spell("jax.numpy.zeros", made, accumulators.NUMPY)
    if zeros is None:
        raise NotPossible
    before, after = f".init({zeros}", ")"
    if accumulators.old_layouts(context):
        around = accumulators.cast(editor, made)
        if around is None:
            raise NotPossible
        before, after = f".init({around[0]}{zeros}", f"{around[1]})"
    given = syntax.arguments(made)
    if given.get(1, "dtype") is None:
        float32 = editor.spell("jax.numpy.float32", made, accumulators.NUMPY)
        if float32 is None or not given.complete:
            raise NotPossible
        editor.insert_argument(made, float32 if "shape" not in given.keywords else f"dtype={float32}")
    editor.insert(syntax.span(made.func)[1], before)
    editor.insert(syntax.span(made)[1], after)


def _initialise_other(context: Context, editor: Editor, spot: Spot) -> None:
    """A ref that a name or a call stands for: its shape and dtype are asked of it."""
    syntax, node = editor.syntax, spot.node
    accumulator = accumulators.spell_accumulator(editor, node)
    zeros = editor.spell("jax.numpy.zeros", node, accumulators.NUMPY)
    if accumulator is None or zeros is None:
        raise NotPossible
    name = syntax.source(node)
    if not isinstance(node, ast.Name | ast.Attribute):
        statement = syntax.statement(node)
        function = syntax.function(node)
        if statement is None or isinstance(function, ast.Lambda) or not isinstance(statement, ast.Assign | ast.Return):
            raise NotPossible
        name = accumulators.unique_name(syntax, node, "acc_type")
        editor.add_before(statement, f"{name} = {syntax.source(node)}")
    value = f"{zeros}({name}.shape, {name}.dtype)"
    if accumulators.old_layouts(context):
        around = accumulators.cast(editor, node)
        if around is None:
            raise NotPossible
        value = f"{around[0]}{value}{around[1]}"
    editor.replace(node, f"{accumulator}.init({value})")


# -- run_scoped ------------------------------------------------------------------------------------------------------


def scoped(use: Use, given: Sequence[Mapping[str, Any]]) -> Fix | None:
    """``run_state(body)(types)`` -> ``run_scoped(body, types)``, the body returning the values.

    ``given``: every ref that the call gets; each must be an accumulator without a value.
    """
    if any(leaf.get("initialized") or leaf.get("kind") != accumulators.KIND for leaf in given):
        return None
    editor = Editor(use.spot.path, use.syntax)
    try:
        _return_values(editor, use, [steps(str(leaf.get("path", ""))) for leaf in given])
        _call_scoped(editor, use)
    except NotPossible:
        return None
    what = "the accumulator's value" if len(given) == 1 else "the accumulators' values"
    return Fix(f"Use pl.run_scoped, with the body returning {what}", editor.edits(), Safety.SAFE)


def _return_values(editor: Editor, use: Use, paths: Sequence[Steps]) -> None:
    function, syntax = use.function, use.syntax
    received = parameter(use, 0)
    if function is None or received is None or _used_elsewhere(use, function):
        raise NotPossible
    value = _values(syntax, function, received, paths)
    if isinstance(function, ast.Lambda):
        start, end = editor.whole(function.body)
        editor.insert(start, "(")
        editor.insert(end, f", {value})[1]")
        return
    for returned in syntax.returns(function):
        if not _is_nothing(returned.value):
            raise NotPossible
        editor.replace(returned, f"return {value}")
    last = function.body[-1]
    if not isinstance(last, ast.Return):
        if isinstance(last, ast.Pass):
            editor.replace(last, f"return {value}")
        else:
            editor.add_after(last, f"return {value}")


def _is_nothing(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _used_elsewhere(use: Use, function: Function) -> bool:
    """Whether the body is also used where its return value would be another's business."""
    if isinstance(function, ast.Lambda):
        given = use.body
        return isinstance(given, ast.Name) and len(_reads(use.syntax, given)) > 1
    names = [n for n in ast.walk(use.syntax.tree) if isinstance(n, ast.Name) and n.id == function.name]
    reads = [n for n in names if use.syntax.value(n) is function]
    return len(reads) != 1


def _reads(syntax: Syntax, name: ast.Name) -> list[ast.Name]:
    return [use for use in syntax.uses(name) if isinstance(use.ctx, ast.Load)]


def _values(syntax: Syntax, function: Function, received: ast.arg, paths: Sequence[Steps]) -> str:
    """The values of the refs, in the structure in which the body gets the refs."""
    name = received.arg
    if list(paths) == [()]:
        return f"{name}[...]"
    if all(len(path) == 1 and isinstance(path[0], str) for path in paths):
        return "{" + ", ".join(f'"{path[0]}": {name}["{path[0]}"][...]' for path in paths) + "}"
    if all(path == (index,) for index, path in enumerate(paths)):
        unpacked = _unpacked(function, name, len(paths))
        values = ", ".join(f"{part}[...]" for part in unpacked or [f"{name}[{i}]" for i in range(len(paths))])
        return f"({values},)" if len(paths) == 1 else f"({values})"
    tree_map = syntax.spelled("jax.tree.map", function.body if isinstance(function, ast.Lambda) else function.body[0])
    if tree_map is None:
        raise NotPossible
    return f"{tree_map}(lambda ref: ref[...], {name})"


def _unpacked(function: Function, name: str, count: int) -> list[str]:
    """``a, b = refs`` at the start of the body: the names."""
    first = function.body[0] if not isinstance(function, ast.Lambda) else None
    if not isinstance(first, ast.Assign) or not isinstance(first.value, ast.Name) or first.value.id != name:
        return []
    target = first.targets[0]
    if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != count:
        return []
    names = [e.id for e in target.elts if isinstance(e, ast.Name)]
    return names if len(names) == count else []


def _call_scoped(editor: Editor, use: Use) -> None:
    syntax = use.syntax
    run_scoped = f"{PALLAS[0]}.run_scoped"
    assert isinstance(use.call, ast.Call)
    if use.form is Form.DECORATED:
        assert isinstance(use.body, ast.FunctionDef)
        decorator = next(d for d in use.body.decorator_list if (syntax.dotted(d) or "").endswith(".run_state"))
        written = editor.spell(run_scoped, use.call, PALLAS)
        if len(use.body.decorator_list) != 1 or written is None or len(_reads_of(syntax, use.body)) != 1:
            raise NotPossible
        editor.remove_decorator(decorator)
        start, end = syntax.span(use.call.func)
        editor.change(start, editor.call_open(use.call) + 1, f"{written}({syntax.text[start:end]}, ")
        return
    if use.form not in (Form.DIRECT, Form.STORED) or use.maker is None or len(use.call.args) != 1:
        raise NotPossible
    maker = use.maker
    if isinstance(maker.func, ast.Attribute) and maker.func.attr == "run_state":
        editor.rename(maker.func, "run_scoped")
    else:
        written = editor.spell(run_scoped, maker, PALLAS)
        if written is None:
            raise NotPossible
        editor.replace(maker.func, written)
    if use.form is Form.STORED:
        partial = syntax.spelled("functools.partial", maker)
        if partial is None or not isinstance(use.call.func, ast.Name) or len(_reads(syntax, use.call.func)) != 1:
            raise NotPossible
        editor.insert(syntax.span(maker)[0], f"{partial}(")
        editor.change(editor.call_open(maker), editor.call_open(maker) + 1, ", ")
        return
    join_calls(editor, maker, use.call)


def _reads_of(syntax: Syntax, function: ast.FunctionDef) -> list[ast.Name]:
    return [n for n in ast.walk(syntax.tree) if isinstance(n, ast.Name) and syntax.value(n) is function]


def join_calls(editor: Editor, inner: ast.Call, outer: ast.Call) -> None:
    """``f(a)(b)`` -> ``f(a, b)``; comments and line breaks stay."""
    text, lines = editor.syntax.text, editor.syntax.lines
    _, end = editor.whole(inner.args[-1])
    start, _ = editor.whole(outer.args[0])
    between = [t for t in editor.syntax.tokens_in(end, start) if not t.string.startswith("#")]
    signs = [t.string for t in between]
    if signs not in ([")", "("], [",", ")", "("]):
        raise NotPossible
    close, opening = between[-2], between[-1]
    if text[close.end : opening.start].strip():
        raise NotPossible
    if signs[0] != ",":
        editor.insert(end, ",")
    line_start, line_end = lines.line_start(close.start), lines.line_end(opening.end)
    alone = not text[line_start : close.start].strip() and not text[opening.end : line_end].strip()
    if alone:
        editor.delete(line_start, lines.next_line(opening.end))
    elif line_start <= end and start <= line_end:
        editor.change(close.start, opening.end, "" if text[opening.end : start] else " ")
    else:
        editor.delete(close.start, opening.end)
