"""Text edits that change as little as can be: comments and formatting around them stay.

``Editor`` collects the edits of one file by syntax nodes; ``apply_edits`` applies edits to a text; ``moved`` says where
a place is afterwards.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterable, Sequence

from pallas_lsp.model import Edit, Range
from pallas_lsp.source.positions import Lines
from pallas_lsp.source.syntax import Syntax, Token

_TRIVIA = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE)


class OverlapError(ValueError):
    """Two edits change the same text."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """A text after edits (all of the same file); insertions at one place keep their order."""
    lines = Lines(text)
    spans = [(lines.offset(e.range.start), lines.offset(e.range.end), e.new_text) for e in edits]
    result = []
    done = 0
    for start, end, new in sorted(spans, key=lambda span: (span[0], span[1])):
        if start < done:
            raise OverlapError(f"two edits change the text at offset {start}")
        result += [text[done:start], new]
        done = end
    return "".join([*result, text[done:]])


def moved(text: str, edits: Sequence[Edit], range_: Range) -> Range:
    """Where a range of a text lies after edits; what an edit replaced spans the replacement."""
    lines = Lines(text)
    spans = sorted((lines.offset(e.range.start), lines.offset(e.range.end), len(e.new_text)) for e in edits)

    def shift(offset: int, *, is_end: bool) -> int:
        delta = 0
        for start, end, length in spans:
            inserted_here = start == end == offset
            if end <= offset and (is_end or not inserted_here):
                delta += length - (end - start)
            elif start < offset:
                return start + delta + (length if is_end else 0)
        return offset + delta

    after = Lines(apply_edits(text, edits))
    start = shift(lines.offset(range_.start), is_end=False)
    end = shift(lines.offset(range_.end), is_end=True)
    return after.range(start, max(start, end))


def new_ranges(text: str, edits: Sequence[Edit]) -> list[Range]:
    """The ranges of the text after edits that they wrote; one that only took something away is an empty range."""
    lines, after = Lines(text), Lines(apply_edits(text, edits))
    spans = sorted((lines.offset(e.range.start), lines.offset(e.range.end), len(e.new_text)) for e in edits)
    found, delta = [], 0
    for start, end, length in spans:
        found.append(after.range(start + delta, start + delta + length))
        delta += length - (end - start)
    return found


def original_range(text: str, edits: Sequence[Edit], range_: Range) -> Range | None:
    """Where a range of the text after edits lies in the text before; None where an edit wrote some of it."""
    lines, after = Lines(text), Lines(apply_edits(text, edits))
    start, end = after.offset(range_.start), after.offset(range_.end)
    spans = sorted((lines.offset(e.range.start), lines.offset(e.range.end), len(e.new_text)) for e in edits)
    delta = 0
    for old_start, old_end, length in spans:
        new_start, new_end = old_start + delta, old_start + delta + length
        if new_start >= end and new_end > start:
            break
        if new_end > start:
            return None
        delta += length - (old_end - old_start)
    return lines.range(start - delta, end - delta)


class Editor:
    """Collects the edits of one file."""

    def __init__(self, path: str, syntax: Syntax) -> None:
        self.path = path
        self.syntax = syntax
        self._spans: list[tuple[int, int, str]] = []

    def edits(self) -> tuple[Edit, ...]:
        """The edits in order of place; what touches an insertion is one edit with it, for editors order them freely."""
        merged: list[tuple[int, int, str]] = []
        # At one place, what starts a new line comes after what goes on with the line.
        for start, end, new in sorted(self._spans, key=lambda span: (span[0], span[1], span[2][:1] in "\r\n")):
            if merged and merged[-1][1] == start and (start == end or merged[-1][0] == merged[-1][1]):
                merged[-1] = (merged[-1][0], end, merged[-1][2] + new)
            else:
                merged.append((start, end, new))
        lines = self.syntax.lines
        return tuple(Edit(self.path, lines.range(start, end), new) for start, end, new in merged)

    # -- text ---------------------------------------------------------------------------------------------------------

    def change(self, start: int, end: int, new: str) -> None:
        if new != self.syntax.text[start:end]:
            self._spans.append((start, end, new))

    def insert(self, offset: int, new: str) -> None:
        self.change(offset, offset, new)

    def delete(self, start: int, end: int) -> None:
        self.change(start, end, "")

    def replace(self, node: ast.AST, new: str) -> None:
        self.change(*self.syntax.span(node), new)

    def rename(self, node: ast.Name | ast.Attribute, new: str) -> None:
        """Another name for a name, or for the last part of a dotted one."""
        _, end = self.syntax.span(node)
        old = node.id if isinstance(node, ast.Name) else node.attr
        self.change(end - len(old), end, new)

    # -- brackets and arguments ---------------------------------------------------------------------------------------

    def whole(self, node: ast.AST) -> tuple[int, int]:
        """The span of an expression with the redundant parentheses around it."""
        syntax = self.syntax
        start, end = syntax.span(node)
        parent = syntax.parent(node)
        while True:
            before, after = self._before(start), self._after(end)
            if before is None or after is None or before.string != "(" or after.string != ")":
                return start, end
            if isinstance(parent, ast.Call) and node is not parent.func and before.start == self.call_open(parent):
                return start, end
            if isinstance(parent, ast.Tuple) and before.start == syntax.span(parent)[0]:
                return start, end
            limit = syntax.span(parent) if isinstance(parent, ast.expr | ast.stmt) else (0, len(syntax.text))
            if before.start < limit[0] or after.end > limit[1]:
                return start, end
            start, end = before.start, after.end

    def call_open(self, call: ast.Call) -> int:
        """The offset of a call's opening parenthesis."""
        close = self.syntax.span(call)[1] - 1
        depth = 0
        for token in reversed(self.syntax.tokens_in(self.syntax.span(call.func)[1], close + 1)):
            depth += (token.string in ")]}") - (token.string in "([{") if token.type == tokenize.OP else 0
            if depth == 0:
                return token.start
        return close

    def insert_argument(self, call: ast.Call, new: str) -> None:
        """Add an argument at the end of a call, after its last one."""
        given = _arguments(call)
        if not given:
            self.insert(self.call_open(call) + 1, new)
            return
        last = given[-1]
        _, end = self.whole(last)
        if self.syntax.range(last).end.line != self.syntax.range(call).end.line and self._starts_line(last):
            self.insert(end, f",{self.syntax.lines.newline}{self._indentation(last)}{new}")
        else:
            self.insert(end, f", {new}")

    def remove_argument(self, call: ast.Call, argument: ast.expr | ast.keyword) -> None:
        """Take an argument out of a call, with its comma; comments stay, unless the line held nothing else."""
        self.remove_item(argument, _arguments(call))

    def remove_item(self, item: ast.expr | ast.keyword, items: Sequence[ast.expr | ast.keyword]) -> None:
        """Take an item out of a list, tuple or argument list, with its comma."""
        text, lines = self.syntax.text, self.syntax.lines
        start, end = self.whole(item)
        following = self._after(end)
        if following is not None and following.string == ",":
            end = following.end
            line_start = lines.line_start(start)
            line_end = lines.line_end(end)
            if not text[line_start:start].strip() and not text[end:line_end].strip():
                self.delete(line_start, lines.next_line(end))
                return
            rest = text[end:line_end]
            if not text[line_start:start].strip() and rest.lstrip().startswith("#"):
                self.delete(start, end + len(rest) - len(rest.lstrip()))  # the comment stays, in its place
                return
            if rest.strip() and not rest.lstrip().startswith("#"):
                end += len(rest) - len(rest.lstrip())
            if text[end : end + 1] in (")", "]", "}"):  # it was the last one: a,b,) becomes a,)
                start -= len(text[line_start:start]) - len(text[line_start:start].rstrip())
            self.delete(start, end)
            return
        if items and items[0] is not item:
            comma = self._before(start)
            if comma is not None and comma.string == ",":
                if not text[comma.end : start].strip():
                    self.delete(comma.start, end)
                    return
                self.delete(comma.start, comma.end)
        self.delete(start, end)

    def _neighbour(self, offset: int, step: int) -> Token | None:
        tokens = self.syntax.tokens
        index = next((i for i, t in enumerate(tokens) if t.start >= offset), len(tokens)) - (step < 0)
        while 0 <= index < len(tokens):
            if tokens[index].type not in _TRIVIA:
                return tokens[index]
            index += step
        return None

    def _before(self, offset: int) -> Token | None:
        """The last token before an offset that is no comment."""
        return self._neighbour(offset, -1)

    def _after(self, offset: int) -> Token | None:
        return self._neighbour(offset, 1)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _starts_line(self, node: ast.AST) -> bool:
        start = self.syntax.span(node)[0]
        return not self.syntax.text[self.syntax.lines.line_start(start) : start].strip()

    def _indentation(self, node: ast.AST) -> str:
        line = self.syntax.lines[self.syntax.range(node).start.line]
        return line[: len(line) - len(line.lstrip())]

    def add_before(self, statement: ast.stmt, new: str) -> None:
        """Add a statement (one line) before another."""
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        start = self.syntax.span(statement)[0]
        if decorators:
            start = self.syntax.text.rfind("@", 0, self.syntax.span(decorators[0])[0])
        text, lines = self.syntax.text, self.syntax.lines
        before = text[lines.line_start(start) : start]
        if before.strip():  # several statements on a line
            self.insert(start, f"{new}; ")
        else:
            self.insert(start, f"{new}{self.syntax.lines.newline}{before}")

    def add_after(self, statement: ast.stmt, new: str) -> None:
        """Add a statement (one line) after another, with the same indentation."""
        end = self.syntax.span(statement)[1]
        text, lines = self.syntax.text, self.syntax.lines
        line_end = lines.line_end(end)
        rest = text[end:line_end].strip()
        if (rest and not rest.startswith("#")) or not self._starts_line(statement):
            if isinstance(statement, ast.Pass):
                self.replace(statement, new)
            else:
                self.insert(end, f"; {new}")
            return
        self.insert(line_end, f"{self.syntax.lines.newline}{self._indentation(statement)}{new}")

    def add_first(self, function: ast.FunctionDef | ast.AsyncFunctionDef, new: str) -> None:
        """Add a statement at the start of a function's body, after its docstring."""
        first = function.body[0]
        docstring = first.value if isinstance(first, ast.Expr) else None
        if not (isinstance(docstring, ast.Constant) and isinstance(docstring.value, str)):
            self.add_before(first, new)
        elif len(function.body) > 1:
            self.add_before(function.body[1], new)
        else:
            self.add_after(first, new)

    def remove_statement(self, statement: ast.stmt, block: Sequence[ast.stmt]) -> None:
        """Take a statement out of a block; ``pass`` takes its place where the block would be empty."""
        if len(block) == 1:
            self.replace(statement, "pass")
            return
        text, lines = self.syntax.text, self.syntax.lines
        start, end = self.syntax.span(statement)
        line_start = lines.line_start(start)
        line_end = lines.line_end(end)
        before, after = text[line_start:start], text[end:line_end]
        if not before.strip() and not after.strip():
            self.delete(line_start, lines.next_line(end))
        elif not before.strip() and after.lstrip().startswith("#"):
            self.delete(start, end + len(after) - len(after.lstrip()))  # the comment stays
        elif before.rstrip().endswith(";"):
            self.delete(line_start + before.rstrip().rindex(";"), end)
        elif after.lstrip().startswith(";"):
            gap = len(after) - len(after.lstrip()[1:].lstrip())
            self.delete(start, end + gap)
        else:
            self.replace(statement, "pass")

    def remove_decorator(self, decorator: ast.expr) -> None:
        """Take a decorator out, with its line."""
        text, lines = self.syntax.text, self.syntax.lines
        start, end = self.whole(decorator)
        start = text.rfind("@", 0, start)
        line_start = lines.line_start(start)
        line_end = lines.line_end(end)
        comment = text[end:line_end].strip()
        if comment.startswith("#"):
            self.delete(start, end + len(text[end:line_end]) - len(text[end:line_end].lstrip()))
        else:
            self.delete(line_start, lines.next_line(end))

    # -- imports ------------------------------------------------------------------------------------------------------

    def spell(self, dotted: str, at: ast.AST, module_alias: tuple[str, str] | None = None) -> str | None:
        """How to write a canonical dotted name at a place.

        Where nothing that is imported there leads to it, an import is added: ``module_alias`` is (module, alias), as in
        ``("jax.numpy", "jnp")``.  None where that is not possible.
        """
        known = self.syntax.spelled(dotted, at)
        if known is not None and (known.count(".") <= 1 or module_alias is None):
            return known
        if self._import_beside(dotted, at):
            return dotted.rpartition(".")[2]
        if known is not None or module_alias is None:
            return known
        module, alias = module_alias
        if self.syntax.scope(at).lookup(alias) is not None or not dotted.startswith(module + "."):
            return None
        imports = [s for s in self.syntax.tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
        new = f"import {module} as {alias}"
        if imports:
            if not any(s[2].endswith(new) for s in self._spans):
                self.add_after(imports[-1], new)
        else:
            return None
        return f"{alias}.{dotted.removeprefix(module + '.')}"

    def _import_beside(self, dotted: str, at: ast.AST) -> bool:
        """Import a name where another is already imported from the same module: ``from m import a`` -> ``a, b``."""
        module, _, name = dotted.rpartition(".")
        scope = self.syntax.scope(at)
        for statement in self.syntax.tree.body:
            if not isinstance(statement, ast.ImportFrom) or statement.level or statement.module != module:
                continue
            last = statement.names[-1]
            found = scope.lookup(name)
            if last.name == "*" or (found is not None and name not in {a.name for a in statement.names}):
                continue
            end = self.syntax.span(last)[1]
            if (end, end, f", {name}") not in self._spans:
                self.insert(end, f", {name}")
            return True
        return False


def _arguments(call: ast.Call) -> list[ast.expr | ast.keyword]:
    return sorted([*call.args, *call.keywords], key=lambda node: (node.lineno, node.col_offset))
