"""A file as a graph of its top-level statements: what they bind, read, import, and what runs on import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from pallas_lsp.source.free_names import DEFINITIONS
from pallas_lsp.source.launches import launch_nodes
from pallas_lsp.source.state import is_dynamic
from pallas_lsp.source.statement_facts import Facts, facts, heads
from pallas_lsp.source.syntax import Syntax
from pallas_lsp.source.toplevel import WRAPPERS, is_main_block
from pallas_lsp.source.units import Unit, statements, units

Node = tuple[str, int]
"""A top-level statement: path and number."""


class Module:
    """One file; raises NoUnits where it cannot be divided into statements."""

    def __init__(self, path: str, syntax: Syntax) -> None:
        self.path = path
        self.syntax = syntax
        self.units: tuple[Unit, ...] = units(path, syntax)
        self.statements = statements(syntax)
        blocks = [each for each in syntax.tree.body if is_main_block(each)]
        inside = {id(each) for block in blocks for each in (block, *ast.iter_child_nodes(block))}
        self.main = [number for number, each in enumerate(self.statements) if id(each) in inside]
        self.binders: dict[str, list[int]] = {}
        self.imports: dict[str, list[tuple[str, str | None]]] = {}
        both = zip(self.units, self.statements, strict=True)
        self._facts = [facts(unit.tokens.digest, statement) for unit, statement in both]
        for number, known in enumerate(self._facts):
            for name in known.bound:
                self.binders.setdefault(name, []).append(number)
            for name, module, wanted in known.imports:
                self.binders.setdefault(name, []).append(number)
                self.imports.setdefault(name, []).append((module, wanted))
        for name, number in _given_away([(number, self.statements[number]) for number in self.main]):
            self.binders.setdefault(name, []).append(number)

    @cached_property
    def base(self) -> list[int]:
        """The statements that are executed on import, as far as an edit of them, or of what they use, may matter."""
        found = {number for name in self._evaluated_names for number in self.binders.get(name, ())}
        for number, statement in enumerate(self.statements):
            if number in self.main or _inert(statement):
                continue
            if isinstance(statement, DEFINITIONS):
                if any(node in self._launches for part in heads(statement) for node in ast.walk(part)):
                    found.add(number)
            elif number not in self.wrapping:
                found.add(number)
        return sorted(found)

    @cached_property
    def wrapping(self) -> list[int]:
        """The statements that make functions of functions (``op = jax.jit(_op)``), which calls none of these."""
        return [
            number
            for number, statement in enumerate(self.statements)
            if isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Call)
            and self.syntax.dotted(statement.value.func) in WRAPPERS
            and all(isinstance(argument, ast.Name | ast.Constant) for argument in statement.value.args)
            and all(_plain(keyword.value) for keyword in statement.value.keywords)
            and number not in self.holders
        ]

    @cached_property
    def _launches(self) -> set[ast.AST]:
        return set(launch_nodes(self.syntax.text))

    @cached_property
    def holders(self) -> set[int]:
        """The statements that hold a launch."""
        around = {ancestor for launch in self._launches for ancestor in (launch, *self.syntax.ancestors(launch))}
        return {number for number, statement in enumerate(self.statements) if statement in around}

    def reads(self, number: int) -> frozenset[str]:
        """The names that a statement takes from around it."""
        return self._facts[number].reads

    @cached_property
    def evaluated(self) -> str:
        """What definitions evaluate on import, and the conditions of main blocks."""
        blocks = [each.test for each in self.syntax.tree.body if is_main_block(each) and isinstance(each, ast.If)]
        return "\n".join([*(each.evaluated for each in self._on_import), *map(ast.dump, blocks)])

    @property
    def _on_import(self) -> Iterator[Facts]:
        main = set(self.main)
        return (known for number, known in enumerate(self._facts) if number not in main)

    @cached_property
    def _evaluated_names(self) -> frozenset[str]:
        return frozenset().union(*(known.evaluated_names for known in self._on_import))

    @cached_property
    def keeps_state(self) -> bool:
        """Whether a function of the file changes what other calls of it see, or may do so."""
        assigned: frozenset[str] = frozenset().union(*(known.assigned for known in self._facts))
        return is_dynamic(self.syntax.text) or any(
            known.changes or not assigned.isdisjoint(known.changed_objects) for known in self._facts
        )


def _given_away(statements: list[tuple[int, ast.stmt]]) -> Iterator[tuple[str, int]]:
    """The objects of classes that statements hand to calls, or call methods of: these may change them."""
    made = {
        target.id
        for _, statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_class(node.value.func)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for number, statement in statements:
        given = {
            name.id
            for call in ast.walk(statement)
            if isinstance(call, ast.Call)
            for part in (call.func, *call.args, *(keyword.value for keyword in call.keywords))
            for name in ast.walk(part)
            if isinstance(name, ast.Name)
        }
        yield from ((name, number) for name in sorted(given & made))


def _is_class(called: ast.expr) -> bool:
    """By its name, as classes are written."""
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name[:1].isupper() and name != "ShapeDtypeStruct"


def _inert(statement: ast.stmt) -> bool:
    """Whether executing a statement can neither fail nor do more than bind names to constants."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name) for target in statement.targets) and _plain(statement.value)
    return isinstance(statement, ast.Expr) and _plain(statement.value)


def _plain(value: ast.expr | None) -> bool:
    """Whether an expression of constants cannot fail."""
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return isinstance(value.op, ast.Add | ast.Sub | ast.Mult) and all(map(_number, sides))
    if isinstance(value, ast.Tuple | ast.List):
        return all(map(_plain, value.elts))
    if isinstance(value, ast.Dict):
        return all(isinstance(key, ast.Constant) for key in value.keys) and all(map(_plain, value.values))
    return isinstance(value, ast.Constant)


def _number(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp):
        return _plain(value)
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)
