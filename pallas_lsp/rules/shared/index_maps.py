"""Index maps with another number of results than their block has dimensions: what they could return."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fix
from pallas_lsp.rules.shared.findings import safe, suggested
from pallas_lsp.rules.shared.functions import positional, unused
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax


def result_fixes(
    found: tuple[str, Syntax, Function] | None, returned: ast.expr | None, have: int, want: int
) -> Iterator[Fix | None]:
    """Other results for an index map that returns ``have`` indices where the block has ``want`` dimensions."""
    if found is None:
        return
    path, syntax, function = found
    if returned is None:
        yield _forgotten_return(path, syntax, function, want)
        return
    elements = returned.elts if isinstance(returned, ast.Tuple | ast.List) else [returned]
    if len(elements) == 1 and isinstance(elements[0], ast.Tuple | ast.List) and len(elements[0].elts) == want:
        editor = Editor(path, syntax)
        editor.replace(returned, syntax.source(elements[0]))
        yield suggested("Return the indices themselves, not a tuple inside a tuple", editor)
        return
    if len(elements) != have or any(isinstance(e, ast.Starred) for e in elements):
        return
    texts = [syntax.source(e) for e in elements]
    if have < want:
        missing = want - have
        spare = [p.arg for p in positional(function) if unused(syntax, p)]
        if len(spare) >= missing:
            yield _returning(path, syntax, returned, [*texts, *spare[:missing]], "Return the other grid index too")
        yield _returning(path, syntax, returned, [*texts, *["0"] * missing], "Return block 0 for the missing dimension")
        yield _returning(
            path, syntax, returned, [*["0"] * missing, *texts], "Return block 0 for the missing leading dimension"
        )
        return
    zeros = [i for i, e in enumerate(elements) if isinstance(e, ast.Constant) and e.value == 0]
    if len(zeros) >= have - want:
        drop = set(zeros[-(have - want) :])
        kept = [text for i, text in enumerate(texts) if i not in drop]
        yield _returning(path, syntax, returned, kept, "Return no index for a dimension that the block lacks")


def _forgotten_return(path: str, syntax: Syntax, function: Function, want: int) -> Fix | None:
    """``return`` before the indices that the function ends with."""
    last = function.body[-1] if isinstance(function, ast.FunctionDef) else None
    if not isinstance(last, ast.Expr):
        return None
    given = len(last.value.elts) if isinstance(last.value, ast.Tuple) else 1
    if given != want or (want == 1 and isinstance(last.value, ast.Constant)):
        return None
    editor = Editor(path, syntax)
    editor.insert(editor.whole(last.value)[0], "return ")
    return safe("Return the indices", editor)


def _returning(path: str, syntax: Syntax, returned: ast.expr, texts: list[str], title: str) -> Fix | None:
    editor = Editor(path, syntax)
    text = ", ".join(texts) + ("," if len(texts) == 1 else "")
    editor.replace(returned, f"({text})")
    return suggested(title, editor)
