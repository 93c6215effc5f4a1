"""The fix that turns ``pl.run_state`` into ``pl.run_scoped``: the call, and the body, which returns the values then."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.shared import NotPossible, accumulators
from pallas_lsp.rules.shared.places import Steps, steps
from pallas_lsp.rules.shared.uses import PALLAS, Form, Use, parameter
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax


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
    names = [n for n in use.syntax.nodes if isinstance(n, ast.Name) and n.id == function.name]
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
    return [n for n in syntax.nodes if isinstance(n, ast.Name) and syntax.value(n) is function]


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
