"""The fix that turns ``pl.run_scoped`` into ``pl.run_state``: the call, and the body, which returns nothing then."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import NotPossible, accumulators
from pallas_lsp.rules.shared.start_values import Known
from pallas_lsp.rules.shared.uses import PALLAS, Form, Use, parameter
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax


def state(context: Context, use: Use, given: Sequence[Known]) -> Fix | None:
    """``run_scoped(body, ACC.init(x))`` -> ``run_state(body)(ACC.init(x))``, the body returning nothing."""
    if any(not leaf.get("initialized") or leaf.get("kind") != accumulators.KIND for leaf in given):
        return None
    editor = Editor(use.spot.path, use.syntax)
    try:
        received = [parameter(use, i, _keyword(leaf)) for i, leaf in enumerate(given)]
        names = [p.arg for p in received if p is not None]
        if len(names) != len(given):
            raise NotPossible
        result = _drop_returns(editor, use, names)
        _call_state(editor, use, result)
        assert isinstance(use.call, ast.Call)
        for node in ast.walk(use.call):
            _lay_out(context, editor, node)
    except NotPossible:
        return None
    return Fix("Use pl.run_state, which starts at the value and returns the final one", editor.edits(), Safety.SAFE)


def nested(context: Context, use: Use, given: Sequence[Known]) -> Fix | None:
    """Of several types only one has a value: ``run_scoped`` keeps the others, ``run_state`` inside it gets that one.

    ``run_scoped(body, ACC.init(x), SMEM(...))`` ->
    ``run_scoped(lambda s: run_state(lambda acc: body(acc, s))(ACC.init(x)), SMEM(...))``
    """
    syntax, call = use.syntax, use.call
    filled = [i for i, leaf in enumerate(given) if leaf.get("initialized")]
    if use.form is not Form.DIRECT or not isinstance(call, ast.Call) or len(filled) != 1 or len(given) < 2:
        return None
    types = call.args[1:]
    flat = [f"[{index}]" for index in range(len(types))]
    if call.keywords or [leaf.get("path") for leaf in given] != flat or any(isinstance(t, ast.Starred) for t in types):
        return None
    received = [parameter(use, index) for index in range(len(types))]
    names = [p.arg for p in received if p is not None]
    value = types[filled[0]]
    others = [name for index, name in enumerate(names) if index != filled[0]]
    used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    editor = Editor(use.spot.path, syntax)
    try:
        written = editor.spell(f"{PALLAS[0]}.run_state", call, PALLAS)
        if len(names) != len(types) or used & set(others) or written is None or isinstance(call.args[0], ast.Lambda):
            raise NotPossible
        acc = names[filled[0]]
        if _drop_returns(editor, use, [acc]) != ("", ""):
            raise NotPossible
        start_value = _laid_out(context, editor, value)
    except NotPossible:
        return None
    start, end = editor.whole(call.args[0])
    editor.insert(start, f"lambda {', '.join(others)}: {written}(lambda {acc}: ")
    editor.insert(end, f"({', '.join(names)}))({start_value})")
    editor.remove_argument(call, value)
    return Fix("Start it with pl.run_state, inside the scope of the other refs", editor.edits(), Safety.SAFE)


def _lay_out(context: Context, editor: Editor, node: ast.AST) -> None:
    """Cast the start value of ``ACC.init(x)`` to a WGMMA layout where this jax needs it."""
    init = accumulators.initialiser(editor.syntax, node)
    value = accumulators.start_value(editor.syntax, init) if init is not None else None
    if value is not None and accumulators.needs_cast(context, editor.syntax, value):
        start, end = editor.whole(value)
        before, after = accumulators.cast(editor, value)
        editor.insert(start, before)
        editor.insert(end, after)


def _laid_out(context: Context, editor: Editor, init: ast.expr) -> str:
    """The text of ``ACC.init(x)``, with the cast that ``_lay_out`` adds."""
    syntax = editor.syntax
    call = accumulators.initialiser(syntax, init)
    value = accumulators.start_value(syntax, call) if call is not None else None
    if value is None or not accumulators.needs_cast(context, syntax, value):
        return syntax.source(init)
    (start, end), (inner_start, inner_end) = syntax.span(init), editor.whole(value)
    before, after = accumulators.cast(editor, value)
    text = syntax.text
    return f"{text[start:inner_start]}{before}{text[inner_start:inner_end]}{after}{text[inner_end:end]}"


def _keyword(leaf: Known) -> str | None:
    path = str(leaf.get("path", ""))
    return path.strip("[]'\"") if path.startswith("['") else None


def _drop_returns(editor: Editor, use: Use, names: Sequence[str]) -> tuple[str, str]:
    """Let the body return nothing.  What then stands before and after the call, to make its result the same."""
    function, syntax = use.function, use.syntax
    if function is None or _shared(use, function):
        raise NotPossible
    if isinstance(function, ast.Lambda):
        return _drop_result(editor, function, names)
    around = ("", "")
    returns = syntax.returns(function)
    for returned in returns:
        value = returned.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            continue
        if not _is_state(value, names):
            if len(returns) != 1:
                raise NotPossible
            around = _result(syntax, function, value, names)
        block = _block(syntax, returned)
        if returned is function.body[-1]:
            editor.remove_statement(returned, block)
        else:
            editor.replace(returned, "return")
    return around


def _shared(use: Use, function: Function) -> bool:
    """Whether something else than this use calls the body."""
    if use.form is Form.APPLIED or isinstance(function, ast.Lambda):
        return isinstance(use.body, ast.Name) and len(use.syntax.uses(use.body)) > 2
    names = [n for n in use.syntax.nodes if isinstance(n, ast.Name) and n.id == function.name]
    return len([n for n in names if use.syntax.value(n) is function]) != 1


def _block(syntax: Syntax, statement: ast.stmt) -> list[ast.stmt]:
    parent = syntax.parent(statement)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def _is_read(node: ast.expr, name: str) -> bool:
    """``name[...]``"""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and isinstance(node.slice, ast.Constant)
        and node.slice.value is Ellipsis
    )


def _is_state(node: ast.expr, names: Sequence[str]) -> bool:
    """Whether a returned value is just what run_state returns: the refs' values, in their order."""
    if len(names) == 1:
        return _is_read(node, names[0])
    if not isinstance(node, ast.Tuple | ast.List) or len(node.elts) != len(names):
        return False
    return all(_is_read(element, name) for element, name in zip(node.elts, names, strict=True))


def _result(syntax: Syntax, function: Function, value: ast.expr, names: Sequence[str]) -> tuple[str, str]:
    """A returned value that is made of the accumulator's: the text before and after the accumulator's value."""
    if len(names) > 1:
        for index, name in enumerate(names):
            if _is_read(value, name):
                return "", f"[{index}]"
        raise NotPossible
    reads = [node for node in ast.walk(value) if isinstance(node, ast.Name) and node.id == names[0]]
    read = syntax.parent(reads[0]) if len(reads) == 1 else None
    if not isinstance(read, ast.Subscript) or not _is_read(read, names[0]):
        raise NotPossible
    own = syntax.scopes[function]
    for node in ast.walk(value):
        if isinstance(node, ast.Lambda | ast.NamedExpr | ast.ListComp | ast.GeneratorExp):
            raise NotPossible
        if isinstance(node, ast.Name) and node.id != names[0]:
            found = own.lookup(node.id)
            if found is not None and found[0] is own:
                raise NotPossible
    start, end = syntax.span(value)
    read_start, read_end = syntax.span(read)
    return syntax.text[start:read_start], syntax.text[read_end:end]


def _drop_result(editor: Editor, function: ast.Lambda, names: Sequence[str]) -> tuple[str, str]:
    """``lambda acc: (work, acc[...])[1]`` -> ``lambda acc: work``."""
    body = function.body
    if isinstance(body, ast.Subscript) and isinstance(body.value, ast.Tuple) and len(body.value.elts) == 2:
        index = body.slice
        last = isinstance(index, ast.Constant) and index.value == 1
        last = last or (isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub))
        work, result = body.value.elts
        if last and _is_state(result, names):
            editor.change(*editor.whole(body), editor.syntax.source(work))
            return "", ""
    if isinstance(body, ast.Call):
        return "", ""  # calls such as wgmma(acc, ...) return nothing; if this one does not, the fix does not hold
    raise NotPossible


def _call_state(editor: Editor, use: Use, result: tuple[str, str]) -> None:
    call = use.call
    assert isinstance(call, ast.Call)
    if use.form is Form.APPLIED:
        _apply_state(editor, use, result)
        return
    if use.form is not Form.DIRECT or not call.args:
        raise NotPossible
    types: list[ast.expr | ast.keyword] = [*call.args[1:], *call.keywords]
    if any(
        isinstance(t, ast.Starred) or (isinstance(t, ast.keyword) and t.arg in (None, "collective_axes")) for t in types
    ):
        raise NotPossible
    if not types or (len(types) > 1 and any(isinstance(t, ast.keyword) for t in types)):
        raise NotPossible
    if isinstance(call.func, ast.Attribute) and call.func.attr == "run_scoped":
        editor.rename(call.func, "run_state")
    else:
        written = editor.spell(f"{PALLAS[0]}.run_state", call, PALLAS)
        if written is None:
            raise NotPossible
        editor.replace(call.func, written)
    body_start, body_end = editor.whole(call.args[0])
    if len(types) > 1:
        editor.insert(body_start, "lambda refs: ")
        editor.insert(body_end, "(*refs)")
    _split_call(editor, call, types)
    _rewrite_result(editor, call, result)


def _split_call(editor: Editor, call: ast.Call, types: Sequence[ast.expr | ast.keyword]) -> None:
    """``f(body, x)`` -> ``f(body)(x)``; several types become a tuple."""
    syntax = editor.syntax
    text, lines = syntax.text, syntax.lines
    _, body_end = editor.whole(call.args[0])
    first = types[0]
    start, _ = editor.whole(first)
    if isinstance(first, ast.keyword):
        editor.delete(start, syntax.span(first.value)[0])
    opening, closing = (")((", ")") if len(types) > 1 else (")(", "")
    comma = next(t for t in syntax.tokens_in(body_end, start) if t.string == ",")
    if "\n" not in text[comma.end : start] and "\r" not in text[comma.end : start]:
        editor.change(comma.start, start, opening)
    else:
        line = lines[lines.position(syntax.span(call)[0]).line]
        indentation = line[: len(line) - len(line.lstrip())]
        at = lines.line_start(start)
        if text[at:start].strip():
            editor.insert(start, opening)
        else:
            editor.insert(at, f"{indentation}{opening}{lines.newline}")
    if closing:
        editor.insert(editor.whole(types[-1])[1], closing)


def _rewrite_result(editor: Editor, call: ast.Call, result: tuple[str, str]) -> None:
    before, after = result
    if not before and not after:
        return
    parent = editor.syntax.parent(call)
    alone = isinstance(parent, ast.stmt) or (not before and after.startswith(("[", ".")))
    start, end = editor.syntax.span(call)
    editor.insert(start, before if alone else f"({before}")
    editor.insert(end, after if alone else f"{after})")


def _apply_state(editor: Editor, use: Use, result: tuple[str, str]) -> None:
    """``@partial(run_scoped, acc=x)`` -> ``@lambda body: run_state(body)(x)``."""
    syntax, call = use.syntax, use.call
    assert isinstance(call, ast.Call)
    types: list[ast.expr | ast.keyword] = [*call.args[1:], *call.keywords]
    if len(types) != 1 or result != ("", ""):
        raise NotPossible
    if isinstance(types[0], ast.keyword) and types[0].arg in (None, "collective_axes"):
        raise NotPossible
    written = editor.spell(f"{PALLAS[0]}.run_state", call, PALLAS)
    value = types[0].value if isinstance(types[0], ast.keyword) else types[0]
    start, (value_start, _) = syntax.span(call)[0], editor.whole(value)
    if written is None or any(t.string.startswith("#") for t in syntax.tokens_in(start, value_start)):
        raise NotPossible
    name = accumulators.unique_name(syntax, call, "body")
    editor.change(start, value_start, f"lambda {name}: {written}({name})(")
