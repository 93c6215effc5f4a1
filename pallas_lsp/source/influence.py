"""What a change of a text has an influence on: the names that come from it, followed through the file.

Careful in one direction: what may depend on the change counts as depending on it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from pallas_lsp.model import Range
from pallas_lsp.source.names import Scope
from pallas_lsp.source.syntax import Function, Syntax

_LAUNCHES = ("pallas_call", "kernel", "core_map")
_SCRATCH = ("scratch_types", "scratch_shapes")
_INPUTS = ("in_specs",)
_OUTPUTS = ("out_specs", "out_shape", "out_type")
_NO_REFS = ("compiler_params", "grid", "name", "interpret", "debug", "cost_estimate", "grid_names", "kernel_name")
_ROUNDS = 50

Names = set[tuple[Scope, str]]


class Influence:
    """``changed``: the ranges of ``syntax``, which is the text after the change, that are new."""

    def __init__(self, syntax: Syntax, changed: Sequence[Range]) -> None:
        self.syntax = syntax
        self.changed = tuple(changed)
        self._statements = [n for n in syntax.nodes if isinstance(n, ast.stmt)]
        self._calls = [n for n in syntax.nodes if isinstance(n, ast.Call)]
        self.names: Names = set()
        self._first()
        for _ in range(_ROUNDS):
            if not self._spread():
                break

    def reaches(self, range_: Range) -> bool:
        """Whether what stands at a place is changed, or comes from what is."""
        if self.touches(range_):
            return True
        node = self.syntax.node_at(range_)
        if node is None:
            return False
        statement = self.syntax.statement(node)
        if statement is None or _compound(statement):
            return self._reads(node)
        part = self._argument(node, statement) or statement
        return self._touched(part) or self._reads(part)

    def touches(self, range_: Range) -> bool:
        """Whether what stands at a place is changed itself."""
        return any(_meet(range_, own) for own in self.changed)

    def _argument(self, node: ast.AST, statement: ast.stmt) -> ast.AST | None:
        """The argument of a launch that a place stands in: each of them is for itself."""
        inner = node
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, ast.Call) and _is_launch(self.syntax, parent) and inner is not parent.func:
                return inner
            if parent is statement:
                return None
            inner = parent
        return None

    # -- what is changed itself ---------------------------------------------------------------------------------------

    def _first(self) -> None:
        for statement in self._statements:
            if not self._touched(statement):
                continue
            if _compound(statement):
                self._header(statement)
            elif not self._only_in_launch(statement):
                self._bind(statement)
        for call in self._calls:
            if self._touched(call):
                self._hand_over(call, self._touched)
        for node in self.syntax.nodes:
            if isinstance(node, ast.Lambda) and self._touched(node.body):
                self._result(node)

    def _header(self, statement: ast.stmt) -> None:
        """A definition or block whose own line, not its body, is changed; a new one as a whole."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for parameter in _parameters(statement):
                if self._touched(parameter):
                    self._add(statement.body[0], parameter.arg)
            if any(_covers(own, self.syntax.range(statement)) for own in self.changed):
                self._add(statement, statement.name)
        elif isinstance(statement, ast.For) and (self._touched(statement.target) or self._touched(statement.iter)):
            self._targets(statement, statement.target)

    def _only_in_launch(self, statement: ast.stmt) -> bool:
        """Whether the changes of a statement lie within the arguments of a launch: its result is what it was."""
        inside = [c for c in ast.walk(statement) if isinstance(c, ast.Call) and _is_launch(self.syntax, c)]
        own = [r for r in self.changed if _meet(r, self.syntax.range(statement))]
        arguments = [a for c in inside for a in (*c.args[1:], *(k for k in c.keywords if k.arg not in _OUTPUTS))]
        return bool(inside) and all(any(_covers(self.syntax.range(a), r) for a in arguments) for r in own)

    # -- what comes from it -------------------------------------------------------------------------------------------

    def _spread(self) -> bool:
        before = len(self.names)
        for statement in self._statements:
            if _compound(statement):
                if isinstance(statement, ast.For) and self._reads(statement.iter):
                    self._targets(statement, statement.target)
            elif self._reads(statement) and not self._reads_in_launch_only(statement):
                self._bind(statement)
        for call in self._calls:
            if self._reads(call):
                self._hand_over(call, self._reads)
        for node in self.syntax.nodes:
            if isinstance(node, ast.Lambda) and self._reads(node.body):
                self._result(node)
        return len(self.names) > before

    def _reads_in_launch_only(self, statement: ast.stmt) -> bool:
        calls = [c for c in ast.walk(statement) if isinstance(c, ast.Call) and _is_launch(self.syntax, c)]
        inside = {n for c in calls for a in (*c.args, *(k.value for k in c.keywords)) for n in ast.walk(a)}
        return bool(calls) and not any(n not in inside for n in self._uses(statement))

    def _bind(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._targets(statement, target)
        elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
            self._targets(statement, statement.target)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                if self._touched(alias):
                    self._add(statement, (alias.asname or alias.name).partition(".")[0])
        elif isinstance(statement, ast.Return):
            function = self.syntax.function(statement)
            if function is not None:
                self._result(function)
        for node in ast.walk(statement):
            if isinstance(node, ast.NamedExpr):
                self._targets(statement, node.target)

    def _targets(self, at: ast.AST, target: ast.expr) -> None:
        """The names that a target binds; a store into a part of something changes no type."""
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._add(at, node.id)

    def _result(self, function: Function) -> None:
        """A function whose result depends on the change: its name, and what a lambda is assigned to or given to."""
        if not isinstance(function, ast.Lambda):
            self._add(function, function.name)
            return
        statement = self.syntax.statement(function)
        if statement is not None and not _compound(statement):
            self._bind(statement)

    def _hand_over(self, call: ast.Call, test: Callable[[ast.AST], bool]) -> None:
        """The parameters of functions of this file that a call gives something to that depends on the change."""
        if _is_launch(self.syntax, call):
            self._launched(call, test)
            return
        callee = self.syntax.callee(call.func)
        made = self.syntax.value(call.func)
        if isinstance(made, ast.Call) and _is_launch(self.syntax, made) and made.args:
            callee = self.syntax.callee(made.args[0])  # its operands become the first parameters of the body
        if callee is not None:
            names = [p.arg for p in [*callee.args.posonlyargs, *callee.args.args]]
            for position, argument in enumerate(call.args):
                if test(argument):
                    wanted = names[position : position + 1] if not isinstance(argument, ast.Starred) else names
                    self._parameters(callee, wanted)
            for keyword in call.keywords:
                if test(keyword.value):
                    self._parameters(callee, [keyword.arg] if keyword.arg else [p.arg for p in _parameters(callee)])
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(test(each) for each in given):
            for each in given:
                function = self.syntax.callee(each) if isinstance(each, ast.Name | ast.Lambda | ast.Call) else None
                if function is not None:
                    self._parameters(function, [p.arg for p in _parameters(function)])

    def _launched(self, call: ast.Call, test: Callable[[ast.AST], bool]) -> None:
        body = self.syntax.callee(call.args[0]) if call.args else None
        if body is None:
            return
        names = [p.arg for p in [*body.args.posonlyargs, *body.args.args]]
        everything = [p.arg for p in _parameters(body)]
        sizes = {k.arg: _elements(self.syntax, k.value) for k in call.keywords}
        inputs = next((len(sizes[n] or ()) for n in _INPUTS if sizes.get(n)), None)
        for keyword in call.keywords:
            if not test(keyword.value) or keyword.arg in _NO_REFS:
                continue
            elements = sizes.get(keyword.arg)
            hit = [i for i, e in enumerate(elements or ()) if test(e)]
            if elements is None or not hit or body.args.vararg is not None:
                self._parameters(body, everything)
            elif keyword.arg in _SCRATCH:
                first = len(names) - len(elements)
                self._parameters(body, [names[first + i] for i in hit] if first >= 0 else everything)
            elif keyword.arg in _INPUTS:
                self._parameters(body, [names[i] for i in hit if i < len(names)])
            elif keyword.arg in _OUTPUTS and inputs is not None:
                self._parameters(body, [names[inputs + i] for i in hit if inputs + i < len(names)])
            else:
                self._parameters(body, everything)
        if any(test(argument) for argument in call.args[1:]):
            self._parameters(body, everything)

    def _parameters(self, function: Function, names: Iterable[str]) -> None:
        scope = self.syntax.scopes.get(function)
        if scope is not None:
            self.names.update((scope, name) for name in names)

    # -- looking ------------------------------------------------------------------------------------------------------

    def _add(self, at: ast.AST, name: str) -> None:
        found = self.syntax.scope(at).lookup(name)
        if found is not None:
            self.names.add((found[0], name))

    def _touched(self, node: ast.AST) -> bool:
        own = self.syntax.range(node)
        return any(_meet(own, each) for each in self.changed)

    def _uses(self, node: ast.AST) -> Iterator[ast.Name]:
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and self.names:
                found = self.syntax.scope(each).lookup(each.id)
                if found is not None and (found[0], each.id) in self.names:
                    yield each

    def _reads(self, node: ast.AST) -> bool:
        return next(self._uses(node), None) is not None


def _is_launch(syntax: Syntax, call: ast.Call) -> bool:
    name = syntax.called(call) or ""
    return name.startswith("jax.") and name.rpartition(".")[2] in _LAUNCHES


def _elements(syntax: Syntax, node: ast.expr) -> list[ast.expr] | None:
    value = syntax.value(node)
    if isinstance(value, ast.List | ast.Tuple):
        return None if any(isinstance(e, ast.Starred) for e in value.elts) else value.elts
    return [node] if isinstance(value, ast.Call) else None


def _parameters(function: Function) -> list[ast.arg]:
    arguments = function.args
    rest = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _compound(statement: ast.stmt) -> bool:
    return any(isinstance(getattr(statement, name, None), list) for name in ("body", "orelse", "finalbody"))


def _meet(a: Range, b: Range) -> bool:
    return a.start <= b.end and b.start <= a.end


def _covers(outer: Range, inner: Range) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
