"""A grid whose axes change places: in the grid itself, in every index map, and where the body asks for its indices."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Fault
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.silent import PALLAS
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS, Function, Syntax

_ASKS = (f"{PALLAS[0]}.program_id", f"{PALLAS[0]}.num_programs")


def reordered(fault: Fault, context: Context, order: Sequence[int]) -> Editor | None:
    """``order[new] = old``: the edits of one file, None where something cannot be followed."""
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    grid = launch.argument("grid") if launch is not None else None
    if launch is None or body is None or grid is None or not grid.path == launch.spot.path == body[0]:
        return None
    syntax = launch.syntax
    value = syntax.value(grid.node)
    if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(order):
        return None
    editor = Editor(launch.spot.path, syntax)
    _permute(editor, value.elts, order)
    maps = _index_maps(launch)
    if maps is None:
        return None
    for function in maps:
        names = positional(function)
        plain = len(names) == len(order) and not function.args.defaults
        if not plain or function.args.kwonlyargs or function.args.vararg or function.args.kwarg:
            return None
        _permute(editor, names, order)
    if not _body(editor, syntax, body[2], order) or not _semantics(editor, launch, order):
        return None
    return editor


def _permute(editor: Editor, nodes: Sequence[ast.expr] | Sequence[ast.arg], order: Sequence[int]) -> None:
    syntax = editor.syntax
    sources = [syntax.text[slice(*_whole(editor, node))] for node in nodes]
    for new, old in enumerate(order):
        editor.change(*_whole(editor, nodes[new]), sources[old])


def _whole(editor: Editor, node: ast.expr | ast.arg) -> tuple[int, int]:
    return editor.whole(node) if isinstance(node, ast.expr) else editor.syntax.span(node)


def _index_maps(launch: Launch) -> list[Function] | None:
    """The functions of all index maps of a launch, each once; None where one is not to be seen."""
    syntax = launch.syntax
    found: list[Function] = []
    for name in ("in_specs", "out_specs"):
        given = launch.argument(name)
        if given is None or given.path != launch.spot.path:
            return None
        for call in _specs(syntax, given.node):
            if call is None:
                return None
            index_map = syntax.argument(call, 1, "index_map")
            if index_map is None:
                continue
            function = syntax.callee(index_map)
            if function is None:
                return None
            if function not in found:
                found.append(function)
    return found


def _specs(syntax: Syntax, node: ast.expr) -> list[ast.Call | None]:
    value = syntax.value(node)
    if isinstance(value, ast.Tuple | ast.List):
        return [each for element in value.elts for each in _specs(syntax, element)]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _specs(syntax, value.left)
    return [value if isinstance(value, ast.Call) and (syntax.called(value) or "").endswith("BlockSpec") else None]


def _body(editor: Editor, syntax: Syntax, function: Function, order: Sequence[int]) -> bool:
    """Other numbers for ``pl.program_id`` and ``pl.num_programs``; False where an axis is no number."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        if syntax.called(node) in _ASKS:
            axis = syntax.argument(node, 0, "axis")
            if not isinstance(axis, ast.Constant) or not isinstance(axis.value, int) or axis.value not in order:
                return False
            editor.replace(axis, str([*order].index(axis.value)))
        elif isinstance(node.func, ast.Name) and isinstance(syntax.callee(node.func), FUNCTIONS):
            inner = syntax.callee(node.func)
            outside = inner is not None and not any(inner is each for each in ast.walk(function))
            asks = [n for n in ast.walk(inner) if isinstance(n, ast.Call)] if inner is not None and outside else []
            if any(syntax.called(n) in _ASKS for n in asks):
                return False
    return True


def _semantics(editor: Editor, launch: Launch, order: Sequence[int]) -> bool:
    """``dimension_semantics`` of the compiler parameters."""
    params = launch.argument("compiler_params")
    if params is None:
        return True
    value = launch.syntax.value(params.node)
    if not isinstance(value, ast.Call):
        return False
    given = launch.syntax.arguments(value).keywords.get("dimension_semantics")
    if given is None:
        return True
    names = launch.syntax.value(given)
    if not isinstance(names, ast.Tuple | ast.List) or len(names.elts) != len(order):
        return False
    _permute(editor, names.elts, order)
    return True
