"""Values that a kernel loaded whole from a ref (``x = x_ref[...]``), and parts of them read from the ref instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pallas_lsp.model import Fix, Safety
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

PALLAS = ("jax.experimental.pallas", "pl")
_LOADS = frozenset({"jax.experimental.pallas.triton.load", "jax.experimental.pallas.tpu.load"})


@dataclass(frozen=True)
class Load:
    """``ref``: the ref's expression; ``suffix``: what is done to the value afterwards, ``.astype(jnp.float32)``."""

    ref: ast.expr
    suffix: str = ""


class NotPossibleError(Exception):
    """The source is of a form that cannot be rewritten."""


def load_of(syntax: Syntax, node: ast.expr) -> Load | None:
    """The load that an expression stands for, where it loads a whole ref, through names and ``astype``."""
    value = syntax.value(node)
    if not isinstance(value, ast.expr):
        return None
    if isinstance(value, ast.Call):
        if syntax.dotted(value.func) in _LOADS and len(value.args) == 1 and not value.keywords:
            return Load(value.args[0]) if isinstance(value.args[0], ast.Name) else None
        if isinstance(value.func, ast.Attribute) and value.func.attr == "astype":
            inner = load_of(syntax, value.func.value)
            start, end = syntax.span(value.func.value)[1], syntax.span(value)[1]
            return Load(inner.ref, inner.suffix + syntax.text[start:end]) if inner is not None else None
        return None
    if isinstance(value, ast.Subscript) and is_whole(value.slice) and isinstance(value.value, ast.Name):
        return Load(value.value)
    return None


def is_whole(index: ast.expr) -> bool:
    """Whether an index takes everything: `[...]`, `[:]`, `[:, :]`."""
    if isinstance(index, ast.Tuple):
        return all(is_whole(each) for each in index.elts)
    if isinstance(index, ast.Slice):
        return index.lower is None and index.upper is None and index.step is None
    return isinstance(index, ast.Constant) and index.value is Ellipsis


def is_stored_to(syntax: Syntax, ref: ast.expr) -> bool:
    """Whether the text stores to a ref, or hands it on to a function, which might."""
    if not isinstance(ref, ast.Name):
        return True
    for use in syntax.uses(ref):
        parent = syntax.parent(use)
        if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store | ast.Del):
            return True
        if isinstance(parent, ast.Call) and use in parent.args:
            return True
    return False


# -- reading parts ---------------------------------------------------------------------------------------------------


def part(editor: Editor, node: ast.expr, rank: int) -> str:
    """What reads from the ref what an expression takes out of its loaded value; raises NotPossibleError."""
    syntax = editor.syntax
    if isinstance(node, ast.Subscript):
        load = load_of(syntax, node.value)
        index = _index(syntax, node.slice, load) if load is not None else None
    elif isinstance(node, ast.Call) and (taker := _TAKERS.get(syntax.dotted(node.func) or "")) is not None:
        operand = syntax.argument(node, 0, taker.operand)
        load = load_of(syntax, operand) if operand is not None else None
        index = taker.index(editor, node, rank) if load is not None else None
    else:
        raise NotPossibleError
    if load is None or index is None:
        raise NotPossibleError
    return f"{syntax.source(load.ref)}[{index}]{load.suffix}"


def _index(syntax: Syntax, index: ast.expr, load: Load | None) -> str | None:
    """The index of a value as an index of its ref, where both mean the same."""
    if load is None:
        return None
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    texts = []
    for axis, each in enumerate(parts):
        if isinstance(each, ast.Constant) and (each.value is None or isinstance(each.value, bool | str)):
            return None
        if isinstance(each, ast.Slice) and _is_negative(each.step):
            return None
        if _is_negative(each):
            after_dots = any(isinstance(p, ast.Constant) and p.value is Ellipsis for p in parts[:axis])
            assert isinstance(each, ast.UnaryOp)
            size = f"{syntax.source(load.ref)}.shape[{axis - len(parts) if after_dots else axis}]"
            texts.append(f"{size} - {syntax.source(each.operand)}")
        else:
            texts.append(syntax.source(each))
    return ", ".join(texts)


def _is_negative(node: ast.expr | None) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


@dataclass(frozen=True)
class _Taker:
    """A function that takes a part out of an array: the name of that argument, and the index it comes to."""

    operand: str
    index: Callable[[Editor, ast.Call, int], str | None]


def _dynamic_slice(editor: Editor, call: ast.Call, _rank: int) -> str | None:
    syntax = editor.syntax
    starts = _sequence(syntax, syntax.argument(call, 1, "start_indices"))
    sizes = _sequence(syntax, syntax.argument(call, 2, "slice_sizes"))
    if starts is None or sizes is None or len(starts) != len(sizes):
        return None
    return ", ".join(_ds(editor, call, start, size) for start, size in zip(starts, sizes, strict=True))


def _slice_in_dim(editor: Editor, call: ast.Call, rank: int) -> str | None:
    syntax = editor.syntax
    start, size = syntax.argument(call, 1, "start_index"), syntax.argument(call, 2, "slice_size")
    axis = _axis(syntax.argument(call, 3, "axis"), rank)
    if start is None or size is None or axis is None:
        return None
    return _along(axis, _ds(editor, call, syntax.source(start), syntax.source(size)))


def _index_in_dim(editor: Editor, call: ast.Call, rank: int) -> str | None:
    syntax = editor.syntax
    index = syntax.argument(call, 1, "index")
    axis = _axis(syntax.argument(call, 2, "axis"), rank)
    keep = syntax.argument(call, 3, "keepdims")
    if index is None or axis is None or not (keep is None or isinstance(keep, ast.Constant)):
        return None
    text = syntax.source(index)
    return _along(axis, _ds(editor, call, text, "1") if keep is None or keep.value else text)


def _take(editor: Editor, call: ast.Call, rank: int) -> str | None:
    syntax = editor.syntax
    indices, given = syntax.argument(call, 1, "indices"), syntax.argument(call, 2, "axis")
    axis = _axis(given, rank) if given is not None else None
    if indices is None or axis is None:
        return None
    return _along(axis, syntax.source(indices))


def _static_slice_in_dim(editor: Editor, call: ast.Call, rank: int) -> str | None:
    syntax = editor.syntax
    start, limit = syntax.argument(call, 1, "start_index"), syntax.argument(call, 2, "limit_index")
    axis = _axis(syntax.argument(call, 4, "axis"), rank)
    if start is None or limit is None or axis is None or syntax.argument(call, 3, "stride") is not None:
        return None
    return _along(axis, f"{_bound(syntax, start)}:{_bound(syntax, limit)}")


def _static_slice(editor: Editor, call: ast.Call, _rank: int) -> str | None:
    syntax = editor.syntax
    starts = _sequence(syntax, syntax.argument(call, 1, "start_indices"))
    limits = _sequence(syntax, syntax.argument(call, 2, "limit_indices"))
    if starts is None or limits is None or len(starts) != len(limits) or len(call.args) + len(call.keywords) > 3:
        return None
    return ", ".join(f"{start}:{limit}" for start, limit in zip(starts, limits, strict=True))


_TAKERS = {
    "jax.lax.dynamic_slice": _Taker("operand", _dynamic_slice),
    "jax.lax.dynamic_slice_in_dim": _Taker("operand", _slice_in_dim),
    "jax.lax.dynamic_index_in_dim": _Taker("operand", _index_in_dim),
    "jax.lax.slice_in_dim": _Taker("operand", _static_slice_in_dim),
    "jax.lax.slice": _Taker("operand", _static_slice),
    "jax.numpy.take": _Taker("a", _take),
}


def _sequence(syntax: Syntax, node: ast.expr | None) -> list[str] | None:
    value = syntax.value(node) if node is not None else None
    return [syntax.source(e) for e in value.elts] if isinstance(value, ast.Tuple | ast.List) else None


def _bound(syntax: Syntax, node: ast.expr) -> str:
    return "" if isinstance(node, ast.Constant) and node.value is None else syntax.source(node)


def _axis(node: ast.expr | None, rank: int) -> int | None:
    if node is None:
        return 0
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if _is_negative(node) and isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return rank - int(node.operand.value) if isinstance(node.operand.value, int) else None
    return None


def _along(axis: int, text: str) -> str:
    return ", ".join([":"] * axis + [text])


def _ds(editor: Editor, at: ast.AST, start: str, size: str) -> str:
    ds = editor.spell(f"{PALLAS[0]}.ds", at, PALLAS)
    if ds is None:
        raise NotPossibleError
    return f"{ds}({start}, {size})"


# -- the fix ---------------------------------------------------------------------------------------------------------


def read_parts(spot: Spot, rank: int) -> Fix | None:
    """Take every part of a loaded value from its ref: the one at ``spot``, and the others that are taken likewise."""
    syntax = spot.syntax
    editor = Editor(spot.path, syntax)
    try:
        own = part(editor, spot.node, rank)
    except NotPossibleError:
        return None
    editor.replace(spot.node, own)
    for other in _others(syntax, spot.node):
        try:
            editor.replace(other, part(editor, other, rank))
        except NotPossibleError:
            continue
    load = load_of(syntax, operand(syntax, spot.node) or spot.node)
    stored = load is None or is_stored_to(syntax, load.ref)
    title = f"Read `{own}` from the ref"
    if stored:
        title += " (what was stored to it since is seen)"
    return Fix(title, editor.edits(), Safety.SUGGESTED if stored else Safety.SAFE)


def operand(syntax: Syntax, node: ast.expr) -> ast.expr | None:
    """The array that an expression takes a part of."""
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node, ast.Call) and (taker := _TAKERS.get(syntax.dotted(node.func) or "")) is not None:
        return syntax.argument(node, 0, taker.operand)
    return None


def _others(syntax: Syntax, node: ast.expr) -> Sequence[ast.expr]:
    """Other expressions that take parts of the same value by name."""
    value = operand(syntax, node)
    if not isinstance(value, ast.Name):
        return ()
    found: list[ast.expr] = []
    for use in syntax.uses(value):
        parent = syntax.parent(use)
        if not isinstance(parent, ast.Subscript | ast.Call) or parent is node or operand(syntax, parent) is not use:
            continue
        if not (parent in syntax.ancestors(node) or node in syntax.ancestors(parent)):
            found.append(parent)
    return found
