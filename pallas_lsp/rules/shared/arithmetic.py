"""Integer forms of expressions that make floats: ``a / b``, ``np.ceil(a / b)``, ``4.0``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

_CEIL = frozenset({"numpy.ceil", "jax.numpy.ceil", "math.ceil", "jax.lax.ceil"})
_FLOOR = frozenset({"numpy.floor", "jax.numpy.floor", "numpy.trunc", "jax.numpy.trunc", "jax.lax.floor"})
CDIV = "jax.experimental.pallas.cdiv"

Change = tuple[str, Sequence[tuple[ast.expr, str]]]


def integer_edits(syntax: Syntax, node: ast.expr) -> Iterator[Change]:
    """(title, [(node, new text)]) of changes that make an expression an integer, best first."""
    node = _resolved(syntax, node)
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value.is_integer():
        yield f"Write the integer `{int(node.value)}`", [(node, str(int(node.value)))]
        return
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        name = syntax.dotted(node.func)
        division = node.args[0]
        if name in _CEIL | _FLOOR and isinstance(division, ast.BinOp) and isinstance(division.op, ast.Div):
            if name in _CEIL:
                text = cdiv(syntax, division)
                if text is not None:
                    yield "Divide with `pl.cdiv`, which rounds up to an integer", [(node, text)]
            else:
                yield "Divide with `//`, which rounds down to an integer", [(node, _floored(syntax, division))]
            return
    divisions = [n for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)]
    if not divisions:
        return
    outer = [d for d in divisions if not any(d in list(ast.walk(o))[1:] for o in divisions)]
    yield (
        f"Divide with `//`: `{_floored(syntax, outer[0])}`" if len(outer) == 1 else "Divide with `//`",
        [(d, _floored(syntax, d)) for d in outer],
    )
    if len(outer) == 1 and outer[0] is node:
        text = cdiv(syntax, outer[0])
        if text is not None:
            yield f"Round up: `{text}`", [(node, text)]


def cdiv(syntax: Syntax, division: ast.BinOp) -> str | None:
    """``pl.cdiv(a, b)`` for ``a / b``."""
    function = Editor("", syntax).spell(CDIV, division)
    if function is None:
        return None
    return f"{function}({syntax.source(division.left)}, {syntax.source(division.right)})"


def _floored(syntax: Syntax, division: ast.BinOp) -> str:
    """The text of a division with every ``/`` in it as ``//``."""
    start, end = syntax.span(division)
    text = syntax.text[start:end]
    slashes = sorted(
        (
            token.start - start
            for token in syntax.tokens_in(start, end)
            if token.string == "/" and _divides(syntax, division, token.start)
        ),
        reverse=True,
    )
    for at in slashes:
        text = f"{text[:at]}//{text[at + 1 :]}"
    return text


def _divides(syntax: Syntax, division: ast.BinOp, offset: int) -> bool:
    """Whether a ``/`` belongs to this division or to one that it is built of, not to a call's arguments."""
    node: ast.expr = division
    while isinstance(node, ast.BinOp):
        if syntax.span(node.left)[1] <= offset < syntax.span(node.right)[0]:
            return isinstance(node.op, ast.Div)
        node = node.left if offset < syntax.span(node.left)[1] else node.right
    return False


def _resolved(syntax: Syntax, node: ast.expr) -> ast.expr:
    """The expression that a name was assigned, where that makes the float."""
    value = syntax.value(node)
    return value if isinstance(value, ast.expr) else node
