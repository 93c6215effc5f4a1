"""Where an argument of a call comes from: through containers, names, helpers, comprehensions and outer frames.

jax names an argument by its place in a tree (``[1]['acc']``); ``follow`` walks the source along that path to the
smallest expression that stands for this argument and nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pallas_lsp.model import Frame, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.source.syntax import FUNCTIONS, Function, Syntax, parameters

Steps = tuple[int | str, ...]
_STEP = re.compile(r"\[(?P<index>\d+)\]|\['(?P<key>[^']*)'\]|\[\"(?P<key2>[^\"]*)\"\]|\.(?P<name>\w+)")
_LIMIT = 40
_OUTSIDE = -1


@dataclass(frozen=True)
class Spot:
    """An expression in a file.  ``depth``: the index of the frame whose function it stands in, -1 where none."""

    path: str
    syntax: Syntax
    node: ast.expr
    depth: int = _OUTSIDE

    @property
    def location(self) -> Location:
        return Location(self.path, self.syntax.range(self.node))

    @property
    def source(self) -> str:
        return self.syntax.source(self.node)

    def at(self, node: ast.expr) -> Spot:
        return replace(self, node=node)


def steps(path: str) -> Steps:
    """``[1]['acc'].x`` -> ``(1, "acc", "x")``, as ``jax.tree_util.keystr`` writes it."""
    found: list[int | str] = []
    for match in _STEP.finditer(path):
        index = match.group("index")
        found.append(int(index) if index is not None else next(g for g in match.groups()[1:] if g is not None))
    return tuple(found)


def frame_from(fact: Mapping[str, Any]) -> Frame:
    """A frame out of a fault's facts, where it is plain data."""
    return Frame(**{name: fact[name] for name in Frame.__slots__ if name in fact})


def expression_at(context: Context, frame: Frame, depth: int = _OUTSIDE) -> Spot | None:
    """The expression that a frame was evaluating.  Without columns: the last call that starts on its line."""
    syntax = context.syntax(frame.path)
    if syntax is None:
        return None
    exact = syntax.lines.frame_range(frame)
    if exact is not None:
        node = syntax.node_at(exact)
        return Spot(frame.path, syntax, node, depth) if isinstance(node, ast.expr) else None
    calls = [n for n in syntax.nodes if isinstance(n, ast.Call) and n.lineno == frame.line]
    calls.sort(key=lambda call: (call.col_offset, -(call.end_col_offset or 0)))
    return Spot(frame.path, syntax, calls[0], depth) if calls else None


def call_at(context: Context, frames: Sequence[Frame], index: int) -> Spot | None:
    """The call that a frame was making."""
    spot = expression_at(context, frames[index], index) if 0 <= index < len(frames) else None
    if spot is None:
        return None
    if isinstance(spot.node, ast.Call) or is_decorator(spot.syntax, spot.node):
        return spot
    call = spot.syntax.call(spot.node)
    return spot.at(call) if call is not None else None


def is_decorator(syntax: Syntax, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function that an expression decorates."""
    parent = syntax.parent(node)
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and node in parent.decorator_list:
        return parent
    return None


def follow(context: Context, frames: Sequence[Frame], start: Spot, path: Steps) -> tuple[Spot, Steps]:
    """The smallest expression for the part of ``start`` that a path names, and the steps that could not be taken."""
    spot, rest = start, path
    for _ in range(_LIMIT):
        outer = _caller_argument(context, frames, spot, rest)
        if outer is not None:
            spot, rest = outer
            continue
        if not rest:
            break
        inner = _step(context, spot, rest)
        if inner is None:
            break
        spot, rest = inner
    return spot, rest


def _step(context: Context, spot: Spot, rest: Steps) -> tuple[Spot, Steps] | None:
    node, step = spot.node, rest[0]
    if isinstance(node, ast.Name | ast.NamedExpr):
        value = spot.syntax.value(node)
        if value is node or not isinstance(value, ast.expr):
            return _appended(spot, rest)
        if isinstance(value, ast.List) and not value.elts:
            return _appended(spot, rest)
        return spot.at(value), rest
    if isinstance(node, ast.Tuple | ast.List) and isinstance(step, int):
        return _element(spot, node.elts, rest)
    if isinstance(node, ast.Dict):
        for key, entry in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == step:
                return spot.at(entry), rest[1:]
        return None
    if isinstance(node, ast.ListComp | ast.GeneratorExp) and isinstance(step, int):
        return spot.at(node.elt), rest[1:]
    if isinstance(node, ast.BinOp) and isinstance(step, int):
        return _operation(spot, node, rest)
    if isinstance(node, ast.Call):
        return _made(context, spot, node, rest)
    return None


def _element(spot: Spot, elements: Sequence[ast.expr], rest: Steps) -> tuple[Spot, Steps] | None:
    step = rest[0]
    assert isinstance(step, int)
    starred = next((i for i, e in enumerate(elements) if isinstance(e, ast.Starred)), len(elements))
    if step < starred and step < len(elements):
        return spot.at(elements[step]), rest[1:]
    if starred < len(elements):
        given = elements[starred]
        assert isinstance(given, ast.Starred)
        if starred == len(elements) - 1:
            return spot.at(given.value), (step - starred, *rest[1:])
        size = _length(spot.syntax, given.value)
        if size is not None and step < starred + size:
            return spot.at(given.value), (step - starred, *rest[1:])
        if size is not None and step - size + 1 < len(elements):
            return spot.at(elements[step - size + 1]), rest[1:]
    return None


def _length(syntax: Syntax, node: ast.expr) -> int | None:
    value = syntax.value(node)
    if isinstance(value, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in value.elts):
        return len(value.elts)
    return None


def _operation(spot: Spot, node: ast.BinOp, rest: Steps) -> tuple[Spot, Steps] | None:
    step = rest[0]
    assert isinstance(step, int)
    if isinstance(node.op, ast.Mult):
        for side in (node.left, node.right):
            size = _length(spot.syntax, side)
            if size:
                return spot.at(side), (step % size, *rest[1:])
        return None
    if isinstance(node.op, ast.Add):
        size = _length(spot.syntax, node.left)
        if size is None:
            return None
        return (spot.at(node.left), rest) if step < size else (spot.at(node.right), (step - size, *rest[1:]))
    return None


def _appended(spot: Spot, rest: Steps) -> tuple[Spot, Steps] | None:
    """``items.append(x)``: the value that was appended to a list at a place of the path."""
    node = spot.node
    if not isinstance(node, ast.Name) or not isinstance(rest[0], int):
        return None
    added = []
    for use in spot.syntax.uses(node):
        attribute = spot.syntax.parent(use)
        call = spot.syntax.parent(attribute) if isinstance(attribute, ast.Attribute) else None
        if isinstance(attribute, ast.Attribute) and attribute.attr == "append" and isinstance(call, ast.Call):
            added += call.args[:1]
    if len(added) == 1:
        return spot.at(added[0]), rest[1:]
    in_loop = any(spot.syntax.around(a, (ast.For, ast.While)) is not None for a in added)
    return (spot.at(added[rest[0]]), rest[1:]) if not in_loop and rest[0] < len(added) else None


def _made(context: Context, spot: Spot, call: ast.Call, rest: Steps) -> tuple[Spot, Steps] | None:
    """A container that a call makes: ``tuple(...)``, ``dict(a=...)``, a class with fields, a helper's return value."""
    syntax, step = spot.syntax, rest[0]
    name = syntax.dotted(call.func)
    if name in ("tuple", "list") and len(call.args) == 1:
        return spot.at(call.args[0]), rest
    given = syntax.arguments(call)
    if isinstance(step, str) and step in given.keywords and name is not None:
        return spot.at(given.keywords[step]), rest[1:]
    made = syntax.value(call.func)
    if isinstance(made, ast.ClassDef) and isinstance(step, str):
        fields = [s.target.id for s in made.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        if step in fields and fields.index(step) < len(given.positional):
            return spot.at(given.positional[fields.index(step)]), rest[1:]
        return None
    found = function_of(context, spot.at(call.func))
    if found is None:
        return None
    helper, function = found
    if isinstance(function, ast.Lambda):
        return replace(helper, node=function.body, depth=_OUTSIDE), rest
    returns = helper.syntax.returns(function)
    if len(returns) == 1 and returns[0].value is not None:
        return replace(helper, node=returns[0].value, depth=_OUTSIDE), rest
    return None


def function_of(context: Context, spot: Spot) -> tuple[Spot, Function] | None:
    """The function that an expression refers to, also one imported from another file of the workspace."""
    function = spot.syntax.callee(spot.node)
    if function is not None:
        return spot, function
    dotted = spot.syntax.dotted(spot.node)
    found = context.imported(spot.path, dotted) if dotted is not None else None
    if found is None:
        return None
    path, syntax, name = found
    for node in syntax.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return Spot(path, syntax, spot.node), node
    return None


def _caller_argument(context: Context, frames: Sequence[Frame], spot: Spot, rest: Steps) -> tuple[Spot, Steps] | None:
    """Where an expression is a parameter of the function around it: the argument in the frame that called it."""
    node = spot.node
    if not isinstance(node, ast.Name) or spot.depth <= 0:
        return None
    binding = spot.syntax.binding(node)
    if binding is None or not isinstance(binding.node, ast.arg):
        return None
    function = spot.syntax.around(binding.node, FUNCTIONS)
    outer = call_at(context, frames, spot.depth - 1)
    if function is None or outer is None or not isinstance(outer.node, ast.Call):
        return None
    called = function_of(context, outer.at(outer.node.func))
    if called is None or called[1] is not function:
        return None
    given = outer.syntax.arguments(outer.node)
    name = binding.node.arg
    if name in given.keywords:
        return outer.at(given.keywords[name]), rest
    if function.args.vararg is binding.node:
        start = len([*function.args.posonlyargs, *function.args.args])
        if rest and isinstance(rest[0], int) and start + rest[0] < len(given.positional):
            return outer.at(given.positional[start + rest[0]]), rest[1:]
        return None
    names = [p.arg for p in parameters(function)]
    index = names.index(name) if name in names else len(given.positional)
    if index < len(given.positional):
        return outer.at(given.positional[index]), rest
    return None
