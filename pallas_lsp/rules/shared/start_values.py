"""Fixes by an accumulator's start value: give it one, leave it out, or store it into the ref first."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import NotPossible, accumulators
from pallas_lsp.rules.shared.places import Spot, Steps
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

Known = Mapping[str, Any]
"""What a fault knows of a ref: kind, shape, dtype, path."""
Filled = tuple[Known, Spot, ast.arg | None]
"""A ref with a value: what is known of it, its expression, and the parameter that receives it."""
Leaf = tuple[Known, Spot, Steps]
"""A ref without a value: what is known of it, its expression, and the part of that which could not be followed."""


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


def _constructor(context: Context, leaf: Known, spot: Spot, rest: Steps) -> Spot:
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
        value = f"{around[0]}{value}{around[1]}"
    editor.replace(node, f"{accumulator}.init({value})")


# -- without the value -----------------------------------------------------------------------------------------------


def without_value(filled: Sequence[Filled]) -> Fix | None:
    """``ACC.init(x)`` -> ``ACC(shape, dtype)``.  Safe where ``x`` is zeros: there an accumulator starts anyway."""
    editors: dict[str, Editor] = {}
    zeros = True
    try:
        for leaf, spot, _ in filled:
            init, value = _value(spot)
            editor = editors.setdefault(spot.path, Editor(spot.path, spot.syntax))
            _drop_value(editor, init, value, leaf)
            zeros = zeros and accumulators.is_zero(spot.syntax, value)
    except NotPossible:
        return None
    edits = tuple(edit for editor in editors.values() for edit in editor.edits())
    it = "an accumulator" if len(filled) == 1 else "accumulators"
    if zeros and len(editors) == 1:
        return Fix(f"Leave the zeros out: {it} start{'s' if len(filled) == 1 else ''} at zero", edits, Safety.SAFE)
    what = "value: the accumulator then starts" if len(filled) == 1 else "values: the accumulators then start"
    return Fix(f"Drop the start {what} at zero", edits, Safety.SUGGESTED)


def _value(spot: Spot) -> tuple[ast.Call, ast.expr]:
    init = accumulators.initialiser(spot.syntax, spot.node)
    value = accumulators.start_value(spot.syntax, init) if init is not None else None
    if init is None or value is None:
        raise NotPossible
    return init, value


def _drop_value(editor: Editor, init: ast.Call, value: ast.expr, leaf: Known) -> None:
    syntax = editor.syntax
    assert isinstance(init.func, ast.Attribute)
    opening = editor.call_open(init)
    end = syntax.span(init)[1]
    inner_start, inner_end = _inside(editor, init)
    shape = _shape(editor, init, value, leaf)
    if isinstance(shape, ast.Call):  # jnp.zeros(shape, dtype): its arguments are the accumulator's
        keep_start, keep_end = editor.call_open(shape) + 1, syntax.span(shape)[1] - 1
        editor.delete(syntax.span(init.func.value)[1], opening)
        editor.delete(opening + 1, keep_start)
        editor.delete(keep_end, end - 1)
        return
    editor.delete(syntax.span(init.func.value)[1], opening)
    editor.change(inner_start, inner_end, shape)


def _inside(editor: Editor, call: ast.Call) -> tuple[int, int]:
    """The span of a call's one argument with its keyword and a comma after it."""
    syntax = editor.syntax
    given: ast.expr | ast.keyword = call.args[0] if call.args else call.keywords[0]
    start, end = editor.whole(given)
    return start, next((t.end for t in syntax.tokens_in(end, syntax.span(call)[1] - 1) if t.string == ","), end)


def _shape(editor: Editor, init: ast.Call, value: ast.expr, leaf: Known) -> str | ast.Call:
    """``shape, dtype`` of a start value, as text; for an inline ``jnp.zeros(...)`` that call."""
    syntax = editor.syntax
    inner = value
    if isinstance(inner, ast.Call) and (syntax.dotted(inner.func) or "").endswith(".layout_cast") and inner.args:
        inner = inner.args[0]
    if isinstance(inner, ast.Call) and syntax.dotted(inner.func) == "jax.numpy.zeros":
        given = syntax.arguments(inner)
        if given.complete and given.get(1, "dtype") is not None and not set(given.keywords) - {"shape", "dtype"}:
            return inner
    if isinstance(value, ast.Name):
        return f"{value.id}.shape, {value.id}.dtype"
    dtype = editor.spell(f"jax.numpy.{leaf.get('dtype')}", init, accumulators.NUMPY)
    if not leaf.get("shape") or not leaf.get("dtype") or dtype is None:
        raise NotPossible
    return f"{accumulators.shape_text(leaf)}, {dtype}"


# -- the value stored first ------------------------------------------------------------------------------------------


def stored_first(context: Context, filled: Sequence[Filled], function: Function | None) -> Fix | None:
    """``ACC.init(x)`` -> ``ACC(shape, dtype)``, and ``acc[...] = x`` as the body's first statement."""
    if not isinstance(function, ast.FunctionDef) or not filled:
        return None
    editor = Editor(filled[0][1].path, filled[0][1].syntax)
    stores = []
    try:
        for leaf, spot, received in filled:
            init, value = _value(spot)
            if received is None or spot.path != editor.path or not _seen_from(editor.syntax, value, function):
                raise NotPossible
            _drop_value(editor, init, value, leaf)
            text = editor.syntax.source(value)
            if accumulators.needs_cast(context, editor.syntax, value):
                before, after = accumulators.cast(editor, function.body[0])
                text = f"{before}{text}{after}"
            if not accumulators.is_zero(editor.syntax, value):
                stores.append(f"{received.arg}[...] = {text}")
    except NotPossible:
        return None
    if not stores:
        return None
    for store in stores:
        editor.add_first(function, store)
    what = "value" if len(stores) == 1 else "values"
    return Fix(f"Store the start {what} first: {stores[0].partition(' = ')[0]} = ...", editor.edits(), Safety.SAFE)


def _seen_from(syntax: Syntax, value: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether the names in an expression mean the same inside a function's body."""
    inside = syntax.scopes[function]
    for node in ast.walk(value):
        if isinstance(node, ast.Lambda | ast.NamedExpr):
            return False
        if isinstance(node, ast.Name):
            here = syntax.scope(node).lookup(node.id)
            there = inside.lookup(node.id)
            if here is not None and (there is None or there[0] is not here[0]):
                return False
            if here is None and there is not None:
                return False
    return True
