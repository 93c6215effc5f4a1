"""The user's innermost expression of a fault, with what its names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pallas_lsp.model import Fault, Frame, Location, Range
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.places import Spot, expression_at
from pallas_lsp.source.syntax import Syntax


@dataclass(frozen=True)
class Line:
    """``node``: the expression (or store target) that the innermost user frame was evaluating."""

    path: str
    syntax: Syntax
    node: ast.expr
    names: Mapping[str, Any]
    frames: tuple[Frame, ...]

    @property
    def location(self) -> Location:
        return self.at(self.node)

    def at(self, node: ast.AST) -> Location:
        return Location(self.path, self.syntax.range(node))

    def spot(self, node: ast.expr | None = None) -> Spot:
        return Spot(self.path, self.syntax, node or self.node, len(self.frames) - 1)

    def kind(self, node: ast.AST | None) -> str:
        """What an expression stands for, as far as its name tells: ``ref``, ``traced``, ``array``, ``number``, ``"""
        fact = self.fact(node)
        return str(fact.get("kind")) if fact is not None else ""

    def fact(self, node: ast.AST | None) -> Mapping[str, Any] | None:
        if isinstance(node, ast.Name):
            fact = self.names.get(node.id)
            return fact if isinstance(fact, Mapping) else None
        if isinstance(node, ast.NamedExpr):
            return self.fact(node.target)
        return None

    @property
    def statement(self) -> ast.stmt | None:
        return self.syntax.statement(self.node)


def line_of(fault: Fault, context: Context) -> Line | None:
    """The innermost user expression by the exception's own traceback."""
    anchor = next((a for a in fault.anchors if a.by == "traceback"), None)
    frames = tuple(f for f in (anchor.frames if anchor is not None else ()) if f.origin == "workspace")
    if not frames:
        return None
    spot = expression_at(context, frames[-1], len(frames) - 1) or _target(context, frames)
    if spot is None:
        return None
    names = fault.facts.get("names")
    return Line(spot.path, spot.syntax, spot.node, names if isinstance(names, Mapping) else {}, frames)


def _target(context: Context, frames: tuple[Frame, ...]) -> Spot | None:
    """What was evaluated where Python reports a whole statement: the target of ``+=``, the test of an ``if``."""
    syntax = context.syntax(frames[-1].path)
    exact = syntax.lines.frame_range(frames[-1]) if syntax is not None else None
    node = syntax.node_at(exact) if syntax is not None and exact is not None else None
    found: ast.expr | None = None
    if isinstance(node, ast.AugAssign):
        found = node.target
    elif isinstance(node, ast.If | ast.While | ast.Assert):
        found = node.test
    elif isinstance(node, ast.For):
        found = node.iter
    elif isinstance(node, ast.Return | ast.Expr | ast.Assign):
        found = node.value
    return Spot(frames[-1].path, syntax, found, len(frames) - 1) if syntax is not None and found is not None else None


def stored_value(line: Line) -> ast.expr | None:
    """The value of the store whose target the line is."""
    statement = line.statement
    if isinstance(statement, ast.Assign) and line.node in statement.targets:
        return statement.value
    if isinstance(statement, ast.AugAssign) and line.node in (statement.target, *ast.walk(statement.target)):
        return statement.value
    if isinstance(statement, ast.AnnAssign) and line.node is statement.target:
        return statement.value
    return None


def operands(node: ast.AST) -> Iterator[ast.expr]:
    """What an expression works on: operands, arguments, the object of a method, elements of lists among them."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.value
        for argument in (*node.args, *(k.value for k in node.keywords)):
            if isinstance(argument, ast.List | ast.Tuple):
                yield from argument.elts
            elif isinstance(argument, ast.Starred):
                yield argument.value
            else:
                yield argument
    elif isinstance(node, ast.Attribute | ast.Subscript):
        yield node.value
    elif isinstance(node, ast.List | ast.Tuple):
        yield from node.elts
    elif isinstance(node, ast.IfExp):
        yield node.test
    elif isinstance(node, ast.Name):
        yield node


def covers(location: Location, syntax: Syntax, node: ast.AST) -> bool:
    own: Range = syntax.range(node)
    return own.start <= location.range.start and location.range.end <= own.end
