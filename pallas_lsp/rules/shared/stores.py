"""Stores into refs in the source, and the changes that give a value another shape."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_lsp.model import Fault, Fix, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import safe, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of, stored_value
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_VALUE_NAMES = ("val", "value")
_METHODS = ("set", "swap", "addupdate")
_REDUCTIONS = frozenset(
    {"sum", "max", "min", "mean", "prod", "any", "all", "var", "std", "amax", "amin", "argmax", "argmin", "logsumexp"}
)
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Pow: "**"}


@dataclass(frozen=True)
class Store:
    """``target``: the ``ref[index]`` of an assignment, or the ref that a function was given."""

    line: Line
    value: ast.expr
    target: ast.expr
    statement: ast.stmt
    augmented: bool = False

    @property
    def path(self) -> str:
        return self.line.path

    @property
    def syntax(self) -> Syntax:
        return self.line.syntax

    @property
    def location(self) -> Location:
        return self.line.at(self.value)

    @property
    def target_location(self) -> Location | None:
        return self.line.at(self.target)

    @property
    def target_source(self) -> str:
        return self.syntax.source(self.target)

    @property
    def target_text(self) -> str:
        return self.target_source

    @property
    def ref_text(self) -> str:
        """The ref itself, without the index and without views."""
        node = self.target
        if isinstance(node, ast.Subscript):
            node = node.value
        while isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "at":
            node = node.value.value
        if isinstance(node, ast.Attribute) and node.attr == "at":
            node = node.value
        return self.syntax.source(node)

    @property
    def whole(self) -> bool:
        """Whether the store covers the whole ref."""
        node = self.target
        if not isinstance(node, ast.Subscript):
            return True
        return isinstance(node.slice, ast.Constant) and node.slice.value is Ellipsis

    def whole_value(self) -> str:
        """``ref[i] + value`` for ``ref[i] += value``."""
        assert isinstance(self.statement, ast.AugAssign)
        operator = _OPERATORS.get(type(self.statement.op), "+")
        return f"{self.target_source} {operator} {parenthesised(self.syntax, self.value, operator)}"


def store_of(fault: Fault, context: Context) -> Store | None:
    """The store that a fault is about: an assignment by index, or a call such as ``plgpu.store(ref, value)``."""
    line = line_of(fault, context)
    statement = line.statement if line is not None else None
    if line is None or statement is None:
        return None
    value = stored_value(line)
    if value is None and isinstance(statement, ast.AugAssign):
        value = statement.value
    if value is not None and isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
        target = line.node
        if isinstance(statement, ast.AugAssign):
            target = statement.target
        return Store(line, value, target, statement, isinstance(statement, ast.AugAssign))
    if isinstance(line.node, ast.Call) and len(line.node.args) >= 1:
        call = line.node
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and _is_view(call.func.value):
            return Store(line, call.args[0], call.func.value, statement)
        named = next((k.value for k in call.keywords if k.arg in _VALUE_NAMES), None)
        positional = [a for a in call.args if not isinstance(a, ast.Starred)]
        given = named or (positional[-1] if len(positional) > 1 else None)
        if given is not None and given is not positional[0]:
            return Store(line, given, positional[0], statement)
    return None


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "at"


def parenthesised(syntax: Syntax, node: ast.expr, operator: str = ".") -> str:
    """The source of an expression, in parentheses where an attribute or operator after it would bind tighter."""
    source = syntax.source(node)
    atomic = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    if isinstance(node, ast.Constant) and operator != ".":
        atomic = True
    if isinstance(node, ast.BinOp) and operator == "+" and isinstance(node.op, ast.Mult | ast.Add | ast.Sub):
        atomic = True
    return source if atomic else f"({source})"


# -- shapes ----------------------------------------------------------------------------------------------------------


def reshaped(store: Store, given: Sequence[int], wanted: Sequence[int]) -> Iterator[Fix | None]:
    """Changes that give the stored value the wanted shape, best first."""
    yield from _reduction(store, given, wanted)
    if math.prod(given) == math.prod(wanted) and not store.augmented and given:
        yield _ones(store, given, wanted)
    if list(reversed(given)) == list(wanted) and len(given) == 2 and given[0] != given[1]:
        editor = _editor(store)
        value = store.value
        if isinstance(value, ast.Attribute) and value.attr == "T":
            editor.replace(value, store.syntax.source(value.value))
            yield suggested("Do not transpose the value", editor)
        else:
            editor.replace(value, parenthesised(store.syntax, value) + ".T")
            yield suggested("Store the transposed value", editor)
        return
    if _broadcasts(given, wanted):
        yield _broadcast(store, given, wanted)
    elif math.prod(given) == math.prod(wanted):
        editor = _editor(store)
        editor.replace(store.value, f"{parenthesised(store.syntax, store.value)}.reshape({_shape(store, wanted)})")
        yield suggested("Reshape the value", editor)


def with_other_ones(store: Store, given: Sequence[int], wanted: Sequence[int]) -> Iterator[Fix | None]:
    """Changes that give a value a shape that differs in dimensions of size 1, best first."""
    yield from _reduction(store, given, wanted)
    yield _ones(store, given, wanted)


def _editor(store: Store) -> Editor:
    return Editor(store.path, store.syntax)


def _shape(store: Store, wanted: Sequence[int]) -> str:
    """The wanted shape as source: the ref's own where the whole ref is stored."""
    if store.whole:
        return f"{store.ref_text}.shape"
    return f"({', '.join(map(str, wanted))}{',' if len(wanted) == 1 else ''})"


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [d for d in shape if d != 1]


def _reduction(store: Store, given: Sequence[int], wanted: Sequence[int]) -> Iterator[Fix | None]:
    """``keepdims=True`` in the reductions of a value that lacks only dimensions of size 1; or without it."""
    if _without_ones(given) != _without_ones(wanted) or len(given) == len(wanted):
        return
    syntax = store.syntax
    value = store.value
    resolved = syntax.value(value)
    for node in (value, resolved):
        if not isinstance(node, ast.expr):
            continue
        calls = [c for c in ast.walk(node) if isinstance(c, ast.Call) and _is_reduction(syntax, c)]
        if not calls:
            continue
        editor = _editor(store)
        kept = [next((k for k in c.keywords if k.arg == "keepdims"), None) for c in calls]
        if len(given) < len(wanted) and not any(kept):
            for call in calls:
                editor.insert_argument(call, "keepdims=True")
            yield safe("Keep the reduced dimension: `keepdims=True`", editor)
        elif len(given) > len(wanted) and all(kept):
            for call, keyword in zip(calls, kept, strict=True):
                assert keyword is not None
                editor.remove_argument(call, keyword)
            yield safe("Do not keep the reduced dimension", editor)
        return


def _is_reduction(syntax: Syntax, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _REDUCTIONS:
        return False
    dotted = syntax.dotted(call.func)
    return dotted is None or not dotted.startswith(("jax.lax.", "math.", "builtins."))


def _ones(store: Store, given: Sequence[int], wanted: Sequence[int]) -> Fix | None:
    """``v[:, None]`` and ``v[0]``: only dimensions of size 1 come or go."""
    if _without_ones(given) != _without_ones(wanted):
        return None
    source = parenthesised(store.syntax, store.value)
    if len(given) < len(wanted):
        index: list[str] = []
        rest = list(given)
        for size in wanted:
            if rest and size == rest[0] and (size != 1 or len(rest) > wanted[len(index) :].count(1) - 1):
                rest.pop(0)
                index.append(":")
            else:
                index.append("None")
        if rest:
            return None
        text = f"{source}[{', '.join(index)}]"
        title = f"Add the missing dimension: `[{', '.join(index)}]`"
    elif len(given) > len(wanted):
        index = []
        rest = list(wanted)
        for position, size in enumerate(given):
            left = len(given) - position
            if rest and size == rest[0] and (size != 1 or left <= len(rest)):
                rest.pop(0)
                index.append(":")
            else:
                index.append("0")
        if rest:
            return None
        while len(index) > 1 and index[-1] == ":":
            index.pop()
        text = f"{source}[{', '.join(index)}]"
        title = f"Drop the dimension of size 1: `[{', '.join(index)}]`"
    else:
        return None
    editor = _editor(store)
    editor.replace(store.value, text)
    return safe(title, editor)


def _broadcasts(given: Sequence[int], wanted: Sequence[int]) -> bool:
    if len(given) > len(wanted):
        return False
    pairs = zip(reversed(given), reversed(wanted), strict=False)
    return not given or (all(have in (want, 1) for have, want in pairs) and math.prod(given) != math.prod(wanted))


def _broadcast(store: Store, given: Sequence[int], wanted: Sequence[int]) -> Fix | None:
    editor = _editor(store)
    source = store.syntax.source(store.value)
    if not given and isinstance(store.value, ast.Constant | ast.UnaryOp):
        function = editor.spell("jax.numpy.full", store.value, ("jax.numpy", "jnp"))
        if function is None:
            return None
        editor.replace(store.value, f"{function}({_shape(store, wanted)}, {source}, {store.ref_text}.dtype)")
        return safe(f"Fill the ref with the value: `{function}(...)`", editor)
    function = editor.spell("jax.numpy.broadcast_to", store.value, ("jax.numpy", "jnp"))
    if function is None:
        return None
    editor.replace(store.value, f"{function}({source}, {_shape(store, wanted)})")
    return suggested("Broadcast the value to the ref's shape", editor)
