"""A parsed document: nodes at a place, enclosing calls and functions, arguments, and what names stand for.

Everything here reads one text and never runs it.  ``parse`` is cached by text, so asking again costs nothing.
"""

from __future__ import annotations

import ast
import tokenize
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

from pallas_lsp.model import Position, Range
from pallas_lsp.source.names import Binding, Scope, build_scopes
from pallas_lsp.source.positions import Lines

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
PARTIAL = frozenset({"functools.partial", "jax.tree_util.Partial"})
_Located = ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias | ast.excepthandler
_N = TypeVar("_N", bound=ast.AST)
_DEPTH = 20
"""How many assignments are followed before a name is given up (``a = b; b = a``)."""


class Token(NamedTuple):
    """A token and its offsets in the text."""

    type: int
    string: str
    start: int
    end: int


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


class Syntax:
    """One text, parsed.  Build it with ``parse``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = Lines(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not ours to report
            self.tree = ast.parse(text.removeprefix("\ufeff"))
        self._parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node

    @cached_property
    def scopes(self) -> dict[ast.AST, Scope]:
        return build_scopes(self.tree)

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens with their offsets, as far as the text can be tokenized; without indentation and end markers."""
        skipped = 1 if self.text.startswith("\ufeff") else 0
        lines = iter([self.lines[n][skipped if n == 0 else 0 :] + "\n" for n in range(len(self.lines))])
        found = []
        try:
            for token in tokenize.generate_tokens(lambda: next(lines, "")):
                if token.type not in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                    (line, column), (end_line, end_column) = token.start, token.end
                    start = Position(line - 1, column + (skipped if line == 1 else 0))
                    end = Position(end_line - 1, end_column + (skipped if end_line == 1 else 0))
                    found.append(Token(token.type, token.string, self.lines.offset(start), self.lines.offset(end)))
        except (tokenize.TokenError, SyntaxError):
            pass  # what was read so far still holds
        return found

    @cached_property
    def comments(self) -> dict[int, str]:
        """The comments by 0-based line."""
        return {self.lines.position(t.start).line: t.string for t in self.tokens if t.type == tokenize.COMMENT}

    def tokens_in(self, start: int, end: int) -> list[Token]:
        """The tokens that lie between two offsets, without line ends."""
        first = bisect_left(self.tokens, start, key=lambda t: t.start)
        found = []
        for token in self.tokens[first:]:
            if token.end > end:
                break
            if token.type not in (tokenize.NL, tokenize.NEWLINE):
                found.append(token)
        return found

    # -- places -------------------------------------------------------------------------------------------------------

    def range(self, node: ast.AST) -> Range:
        assert isinstance(node, _Located)
        return self.lines.node_range(node)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The offsets in the text where a node starts and ends."""
        range_ = self.range(node)
        return self.lines.offset(range_.start), self.lines.offset(range_.end)

    def source(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first, without itself."""
        parent = self._parents.get(node)
        while parent is not None:
            yield parent
            parent = self._parents.get(parent)

    def around(self, node: ast.AST, kind: type[_N] | tuple[type[_N], ...]) -> _N | None:
        """The node itself or the innermost one around it that is of a kind."""
        if isinstance(node, kind):
            return node
        for parent in self.ancestors(node):
            if isinstance(parent, kind):
                return parent
        return None

    def node_at(self, range_: Range) -> ast.AST | None:
        """The smallest node that covers a range; the outermost of those with the same extent."""
        best: ast.AST | None = None
        level: list[ast.AST] = [self.tree]
        while level:
            inner: list[ast.AST] = []
            for node in level:
                if not isinstance(node, _Located):
                    inner.extend(ast.iter_child_nodes(node))
                    continue
                own = self.lines.node_range(node)
                # The lines of a decorated function start at its name, after its decorators.
                decorators = getattr(node, "decorator_list", [])
                start = min([own.start, *(self.lines.node_range(d).start for d in decorators)])
                if start <= range_.start and range_.end <= own.end:
                    if best is None or not isinstance(best, ast.expr) or self.lines.node_range(best) != own:
                        best = node
                    inner = list(ast.iter_child_nodes(node))
                    break
            level = inner
        return best

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement that covers a 0-based line and, of several, starts first on it."""
        best: ast.stmt | None = None
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.stmt):
                continue
            own = self.lines.node_range(node)
            if own.start.line <= line <= own.end.line:
                if best is None:
                    best = node
                    continue
                known = self.lines.node_range(best)
                smaller = own.end.line - own.start.line < known.end.line - known.start.line
                if smaller or (own.start.line == known.start.line == line and own.start < known.start):
                    best = node
        return best

    def statement(self, node: ast.AST) -> ast.stmt | None:
        found: ast.stmt | None = self.around(node, ast.stmt)
        return found

    def function(self, node: ast.AST) -> Function | None:
        """The function around a node (not the node itself)."""
        for parent in self.ancestors(node):
            if isinstance(parent, FUNCTIONS):
                return parent
        return None

    def call(self, node: ast.AST) -> ast.Call | None:
        """The call itself or the innermost one around a node."""
        return self.around(node, ast.Call)

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
                if here.lookup(name) != (scope, bindings):
                    continue
                written = name + dotted[len(imported) :]
                if best is None or len(written) < len(best):
                    best = written
            scope = scope.parent
        return best

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
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id == identifier:
                where = self.scope(node).lookup(identifier)
                if where is not None and where[0] is own:
                    result.append(node)
        return sorted(result, key=lambda n: (n.lineno, n.col_offset))


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
