"""The syntax tree of a text with its places: the node at a range, what is around a node, tokens and comments."""

from __future__ import annotations

import ast
import tokenize
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, TypeVar

from pallas_lsp.model import Position, Range
from pallas_lsp.source.children import children
from pallas_lsp.source.newer import parse_module
from pallas_lsp.source.positions import Lines

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_Located = ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias | ast.excepthandler
_N = TypeVar("_N", bound=ast.AST)


class Token(NamedTuple):
    """A token and its offsets in the text."""

    type: int
    string: str
    start: int
    end: int


class Tree:
    """One text, parsed; raises SyntaxError where it is no Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = Lines(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not ours to report
            self.tree = parse_module(text.removeprefix("\ufeff"))
        self.nodes: list[ast.AST] = [self.tree]
        """All nodes, in the order of ``ast.walk``."""
        self._found: dict[Range, ast.AST | None] = {}
        self._parents: dict[ast.AST, ast.AST] = {}
        for node in self.nodes:
            parts = children(node)
            self._parents.update(dict.fromkeys(parts, node))
            self.nodes += parts

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
        if range_ not in self._found:  # many rules ask for the same ones
            self._found[range_] = self._node_at(range_)
        return self._found[range_]

    def _node_at(self, range_: Range) -> ast.AST | None:
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
        for node in self.nodes:
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
