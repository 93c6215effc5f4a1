"""A parsed document: nodes at a place, enclosing calls and functions, arguments, and what names stand for.

Everything here reads one text and never runs it.  ``parse`` is cached by text, so asking again costs nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pallas_lsp.source.names import Binding, Scope, build_scopes
from pallas_lsp.source.tree import FUNCTIONS, Function, Token, Tree

__all__ = ["FUNCTIONS", "PARTIAL", "Arguments", "Function", "Syntax", "Token", "Tree", "parameters", "parse"]

PARTIAL = frozenset({"functools.partial", "jax.tree_util.Partial"})
_DEPTH = 20
"""How many assignments are followed before a name is given up (``a = b; b = a``)."""


_BACKEND = re.compile(r"jax\.experimental\.pallas\.(?:mosaic_gpu|triton|tpu|ops)(?=\.|$)")


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call after ``functools.partial`` and literal ``*[...]`` and ``**{...}`` are opened.

    ``complete`` is False where something could not be opened; positions after it are then unknown.
    """

    positional: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]
    complete: bool = True

    def get(self, position: int | None, name: str | None) -> ast.expr | None:
        """The argument given as ``name``, else the one at ``position``."""
        if name is not None and name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None


class Syntax(Tree):
    """One text, parsed, with what its names stand for.  Build it with ``parse``."""

    @cached_property
    def scopes(self) -> dict[ast.AST, Scope]:
        return build_scopes(self.tree)

    # -- names --------------------------------------------------------------------------------------------------------

    def scope(self, node: ast.AST) -> Scope:
        """The scope in which the names of a node are looked up."""
        child = node
        for parent in self.ancestors(node):
            if parent in self.scopes and not _outside_body(parent, child):
                return self.scopes[parent]
            child = parent
        return self.scopes[self.tree]

    def binding(self, name: ast.Name) -> Binding | None:
        """What a name stands for, where the file binds it exactly once; None for built-ins and ambiguous names."""
        scope = self.scope(name)
        found = scope.lookup(name.id)
        if found is None:
            return None
        own, bindings = found
        if len(bindings) == 1:
            return bindings[0]
        if own is not scope:
            return None
        # Bound several times in the same straight line of statements: the last one before the use counts.
        statement = self.statement(name)
        block = self._block(statement)
        if block is None or statement is None:
            return None
        before = [b for b in bindings if b.statement in block and block.index(b.statement) < block.index(statement)]
        after_or_elsewhere = [b for b in bindings if b.statement not in block]
        return before[-1] if before and not after_or_elsewhere else None

    def _block(self, statement: ast.stmt | None) -> list[ast.stmt] | None:
        parent = self.parent(statement) if statement is not None else None
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and statement in block:
                return block
        return None

    def dotted(self, node: ast.AST | None) -> str | None:
        """The canonical dotted name of an expression through imports and assignments.

        ``pl.run_state`` -> ``jax.experimental.pallas.run_state``.  A name of the file itself stays as it is written.
        """
        return self._dotted(node, _DEPTH)

    def _dotted(self, node: ast.AST | None, depth: int) -> str | None:
        if depth == 0:
            return None
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value, depth)
            return f"{base}.{node.attr}" if base else None
        if isinstance(node, ast.NamedExpr):
            return self._dotted(node.value, depth - 1)
        if not isinstance(node, ast.Name):
            return None
        binding = self.binding(node)
        if binding is None:
            return node.id if self.scope(node).lookup(node.id) is None else None
        if binding.imported:
            return binding.imported
        if binding.value is not None and isinstance(binding.value, ast.Name | ast.Attribute | ast.NamedExpr):
            return self._dotted(binding.value, depth - 1)
        return node.id

    def spelled(self, dotted: str, at: ast.AST) -> str | None:
        """How a canonical dotted name can be written at a place with what is imported there; the shortest way."""
        best: str | None = None
        here = self.scope(at)
        scope: Scope | None = here
        while scope is not None:
            for name, bindings in scope.bindings.items():
                imported = bindings[0].imported if len(bindings) == 1 else None
                if imported is None or not f"{dotted}.".startswith(f"{imported}."):
                    continue
                if not self._is_loaded(dotted, imported):
                    continue
                if here.lookup(name) != (scope, bindings):
                    continue
                written = name + dotted[len(imported) :]
                if best is None or len(written) < len(best):
                    best = written
            scope = scope.parent
        return best

    def _is_loaded(self, dotted: str, imported: str) -> bool:
        """Whether a name can be reached through an imported one: Pallas does not import its backends by itself."""
        backend = _BACKEND.match(dotted)
        if backend is None or f"{imported}.".startswith(f"{backend[0]}."):
            return True
        return any(
            f"{name}.".startswith(f"{backend[0]}.")
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in _imported_names(node)
        )

    def value(self, node: ast.expr) -> ast.expr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef:
        """The expression or definition that a name stands for, through assignments; else the node itself."""
        current: ast.expr = node
        for _ in range(_DEPTH):
            if isinstance(current, ast.NamedExpr):
                current = current.value
                continue
            if not isinstance(current, ast.Name):
                break
            binding = self.binding(current)
            if binding is None:
                break
            if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                return binding.node
            if binding.value is None:
                break
            current = binding.value
        return current

    def callee(self, node: ast.expr) -> Function | None:
        """The function (def or lambda) that an expression refers to, through names and ``functools.partial``."""
        for _ in range(_DEPTH):
            value = self.value(node)
            if isinstance(value, FUNCTIONS):
                return value
            if isinstance(value, ast.Call) and self.dotted(value.func) in PARTIAL and value.args:
                node = value.args[0]
                continue
            return None
        return None

    # -- calls --------------------------------------------------------------------------------------------------------

    def arguments(self, call: ast.Call) -> Arguments:
        """The arguments of a call; those bound by ``functools.partial`` in its callee come first."""
        positional: list[ast.expr] = []
        keywords: dict[str, ast.expr] = {}
        complete = True
        func = self.value(call.func)
        if isinstance(func, ast.Call) and self.dotted(func.func) in PARTIAL:
            bound = self.arguments(func)
            positional += bound.positional[1:]
            keywords |= bound.keywords
            complete = bound.complete
        for argument in call.args:
            if not isinstance(argument, ast.Starred):
                positional.append(argument)
                continue
            opened = self.value(argument.value)
            if isinstance(opened, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in opened.elts):
                positional += opened.elts
            else:
                complete = False
                break
        for keyword in call.keywords:
            if keyword.arg is not None:
                keywords[keyword.arg] = keyword.value
                continue
            opened = self.value(keyword.value)
            if isinstance(opened, ast.Dict) and all(isinstance(k, ast.Constant) for k in opened.keys):
                for key, value in zip(opened.keys, opened.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        keywords[key.value] = value
            elif isinstance(opened, ast.Call) and self.dotted(opened.func) == "dict" and not opened.args:
                keywords |= {k.arg: k.value for k in opened.keywords if k.arg is not None}
            else:
                complete = False
        return Arguments(tuple(positional), keywords, complete)

    def called(self, call: ast.Call) -> str | None:
        """The canonical name of what a call calls, through ``functools.partial``."""
        node: ast.expr = call.func
        for _ in range(_DEPTH):
            name = self.dotted(node)
            value = self.value(node)
            if isinstance(value, ast.Call) and self.dotted(value.func) in PARTIAL and value.args:
                node = value.args[0]
                continue
            return name
        return None

    def argument(self, call: ast.Call, position: int | None, name: str | None = None) -> ast.expr | None:
        return self.arguments(call).get(position, name)

    # -- functions ----------------------------------------------------------------------------------------------------

    def own_nodes(self, function: Function) -> Iterator[ast.AST]:
        """The nodes of a function's body in source order, without those of functions and classes inside it."""
        body = [function.body] if isinstance(function, ast.Lambda) else function.body
        stack: list[ast.AST] = list(reversed(body))
        while stack:
            node = stack.pop()
            yield node
            if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                stack.extend(reversed(list(ast.iter_child_nodes(node))))

    def returns(self, function: Function) -> list[ast.Return]:
        """The return statements of a function; a lambda has none."""
        return [node for node in self.own_nodes(function) if isinstance(node, ast.Return)]

    def uses(self, name: ast.Name | ast.arg) -> list[ast.Name]:
        """Every place where the thing that a name stands for is read or written, nested functions included."""
        identifier = name.id if isinstance(name, ast.Name) else name.arg
        if isinstance(name, ast.Name):
            found = self.scope(name).lookup(identifier)
            own = found[0] if found else None
        else:
            holder = self.around(name, FUNCTIONS)
            own = self.scopes[holder] if holder is not None else None
        if own is None:
            return []
        result = []
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id == identifier:
                where = self.scope(node).lookup(identifier)
                if where is not None and where[0] is own:
                    result.append(node)
        return sorted(result, key=lambda n: (n.lineno, n.col_offset))


def _imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    return [f"{module}{alias.name}" for alias in node.names]


def parameters(function: Function) -> list[ast.arg]:
    """The parameters in order: positional ones, then keyword-only ones (no ``*args``, no ``**kwargs``)."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _outside_body(scope: ast.AST, child: ast.AST) -> bool:
    """Whether a child of a scope's node is evaluated outside the scope (decorators, defaults, annotations)."""
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return child not in scope.body and not isinstance(child, ast.arguments)
    if isinstance(scope, ast.ClassDef):
        return child not in scope.body
    return False


@lru_cache(maxsize=64)
def parse(text: str) -> Syntax:
    """Parse a text; raises SyntaxError (or ValueError for null bytes) where it is no Python."""
    try:
        return Syntax(text)
    except (RecursionError, MemoryError) as error:
        raise SyntaxError("the file nests too deeply to be read") from error
