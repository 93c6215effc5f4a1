"""Rules that are tables: one row for each way in which jax says the same kind of thing.

A row is chosen by where jax raised and, where one function of jax raises for several reasons, by what it said.  The
message, the place and the fixes of the row are made from the facts, not from jax's words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pallas_lsp.model import Backend, Equation, Fault, Finding, Fix, Location, Range, Related, Stage
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared import operand_refs
from pallas_lsp.rules.shared.places import Spot

Argument = tuple[int | None, str | None]


class Details:
    """One fault, as the rows of a table ask about it."""

    def __init__(self, fault: Fault, context: Context, match: re.Match[str] | None = None) -> None:
        self.fault = fault
        self.context = context
        self.groups = match.groupdict() if match is not None else {}

    def __getitem__(self, group: str) -> str:
        """A named group of the row's pattern."""
        return self.groups.get(group) or ""

    @cached_property
    def location(self) -> Location:
        return self.context.locate(self.fault)

    @cached_property
    def spot(self) -> Spot | None:
        """The expression at fault."""
        syntax = self.context.syntax(self.location.path)
        node = syntax.node_at(self.location.range) if syntax is not None else None
        if syntax is None or not isinstance(node, ast.expr):
            return None
        return Spot(self.location.path, syntax, node)

    @cached_property
    def source(self) -> str:
        """The expression at fault as it is written, on one line."""
        return short(self.context.source(self.location)) or "this"

    @property
    def call(self) -> ast.Call | None:
        return self.spot.node if self.spot is not None and isinstance(self.spot.node, ast.Call) else None

    @property
    def equation(self) -> Equation | None:
        return self.fault.equation

    def inputs(self, index: int) -> str:
        """The type of an operand, ``f32[8,96]``."""
        given = self.fault.equation.inputs if self.fault.equation is not None else ()
        return given[index] if index < len(given) else "?"

    def output(self, index: int = 0) -> str:
        given = self.fault.equation.outputs if self.fault.equation is not None else ()
        return given[index] if index < len(given) else "?"

    def param(self, name: str) -> str:
        return str(self.fault.equation.params.get(name, "")) if self.fault.equation is not None else ""

    @cached_property
    def refs(self) -> tuple[operand_refs.KernelRef, ...]:
        found = operand_refs.of(self.fault, self.context)
        name = self._named()
        if len(found) == 1 and found[0].name == operand_refs.UNKNOWN.name and name:
            return (replace(found[0], name=name),)
        return found

    def _named(self) -> str:
        """The ref of ``ref[...]`` at fault, as it is written."""
        node = self.spot.node if self.spot is not None else None
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        return node.id if isinstance(node, ast.Name) else ""

    @property
    def ref(self) -> operand_refs.KernelRef:
        """The first ref that the operation works on."""
        return self.refs[0] if self.refs else operand_refs.UNKNOWN

    def argument(self, position: int | None, name: str | None) -> Spot | None:
        """An argument of the call at fault; those of a method count from the first one in the parentheses."""
        call = self.call
        if call is None or self.spot is None:
            return None
        given = self.spot.syntax.argument(call, position, name)
        return self.spot.at(given) if given is not None else None

    def written(self, position: int | None, name: str | None, default: str = "") -> str:
        spot = self.argument(position, name)
        return short(spot.source) if spot is not None else default


Text = str | Callable[[Details], str]


@dataclass(frozen=True)
class Row:
    """``at``: the arguments of the call at fault that are marked, the first that is written; else the expression."""

    file: str
    functions: tuple[str, ...]
    text: Text
    pattern: str = ""
    at: Sequence[Argument] | Callable[[Details], Spot | None] = ()
    fixes: Callable[[Details], Sequence[Fix]] | None = None
    related: Callable[[Details], Sequence[Related]] | None = None
    primitives: frozenset[str] = field(default_factory=frozenset)
    exceptions: tuple[str, ...] = ()
    calls: tuple[str, str] | None = None
    """(file, function) of jax that has to be among the callers: for sites that several callers share."""

    def matches(self, fault: Fault) -> re.Match[str] | None:
        if not raised_in(fault, self.file, *self.functions):
            return None
        if self.exceptions and fault.exception.rpartition(".")[2] not in self.exceptions:
            return None
        if self.primitives and (fault.equation is None or fault.equation.primitive not in self.primitives):
            return None
        if self.calls and not passed_through(fault, *self.calls):
            return None
        return re.search(self.pattern, fault.message, re.DOTALL)


def sites(rows: Sequence[Row]) -> tuple[tuple[str, str, str], ...]:
    """The raise sites that the rows of a table cover: file, function, pattern of the message."""
    return tuple(dict.fromkeys((row.file, function, row.pattern) for row in rows for function in row.functions))


def judge(rule: str, rows: Sequence[Row], fault: Fault, context: Context) -> Finding | None:
    """The finding of the first row that fits, or None."""
    for row in rows:
        match = row.matches(fault)
        if match is not None:
            return finding(rule, row, Details(fault, context, match))
    return None


def finding(rule: str, row: Row, details: Details) -> Finding:
    place = _place(row, details)
    message = row.text(details) if callable(row.text) else row.text.format_map(_Names(details))
    fixes = row.fixes(details) if row.fixes is not None else ()
    related = row.related(details) if row.related is not None else ()
    return make(rule, details.fault, details.context, place, message, fixes=fixes, related=related)


def _place(row: Row, details: Details) -> Location:
    if callable(row.at):
        spot = row.at(details)
        return spot.location if spot is not None else details.location
    for position, name in row.at:
        spot = details.argument(position, name)
        if spot is not None:
            return spot.location
    return details.location


def make(
    rule: str,
    fault: Fault,
    context: Context,
    place: Location,
    message: str,
    *,
    fixes: Sequence[Fix | None] = (),
    related: Sequence[Related] = (),
) -> Finding:
    """A finding with what every finding has."""
    capture = context.capture(fault)
    if capture is not None and capture.backend is Backend.ANY and fault.stage is Stage.LOWER and fault.target:
        message += " (The kernel names no backend; the others refuse it too.)"
    return Finding(
        rule=rule,
        location=narrowed(place, context),
        message=message,
        stage=fault.stage,
        related=(*related, *context.related(fault, place)),
        fixes=tuple(fix for fix in fixes if fix is not None),
        kernel=context.kernel(fault),
        arguments=context.arguments(fault),
    )


def narrowed(place: Location, context: Context) -> Location:
    """A place of several lines as the name of what is called there, or as its first line."""
    if place.range.start.line == place.range.end.line:
        return place
    syntax = context.syntax(place.path)
    node = syntax.node_at(place.range) if syntax is not None else None
    if syntax is None:
        return place
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Name | ast.Attribute):
        whole = syntax.range(node)
        if whole.start.line == whole.end.line:
            return Location(place.path, whole)
        end = syntax.lines.offset(whole.end)
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        return Location(place.path, syntax.lines.range(end - len(name), end))
    last = syntax.lines.line_range(place.range.start.line).end
    return Location(place.path, Range(place.range.start, last))


class _Names(dict[str, Any]):
    """What ``{...}`` in a row's text stands for: a group of its pattern, or a fact by name."""

    def __init__(self, details: Details) -> None:
        super().__init__()
        self._details = details

    def __missing__(self, key: str) -> Any:
        details = self._details
        if key in details.groups:
            return details[key]
        refs = (*details.refs, operand_refs.UNKNOWN, operand_refs.UNKNOWN)
        found: dict[str, Any] = {
            "source": details.source,
            "a": details.inputs(0),
            "b": details.inputs(1),
            "out": details.output(),
            "ref": refs[0],
            "other": refs[1],
            "primitive": details.equation.primitive if details.equation is not None else "",
        }
        return found[key] if key in found else details.param(key)
