"""Functions in the source: their heads, results and parameters."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_lsp.model import Location
from pallas_lsp.source.syntax import Function, Syntax, parameters


def head_location(path: str, syntax: Syntax, function: Function) -> Location:
    """The name of a function, or the parameters of a lambda: the range for what concerns its signature."""
    if isinstance(function, ast.Lambda):
        start, _ = syntax.span(function)
        end = syntax.span(function.body)[0]
        text = syntax.text[start:end].rstrip().removesuffix("(").rstrip()
        return Location(path, syntax.lines.range(start, start + len(text.removesuffix(":"))))
    start, _ = syntax.span(function)
    at = syntax.text.index(function.name, start + len("def" if isinstance(function, ast.FunctionDef) else "async def"))
    return Location(path, syntax.lines.range(at, at + len(function.name)))


def result(syntax: Syntax, function: Function) -> ast.expr | None:
    """The expression that a function returns, where there is one."""
    if isinstance(function, ast.Lambda):
        return function.body
    returns = [r.value for r in syntax.returns(function) if r.value is not None]
    return returns[0] if len(returns) == 1 else None


def positional(function: Function) -> list[ast.arg]:
    """The parameters that positional arguments go to."""
    return [*function.args.posonlyargs, *function.args.args]


def unused(syntax: Syntax, parameter: ast.arg) -> bool:
    return not syntax.uses(parameter)


def fresh_names(function: Function, wanted: Sequence[str], count: int) -> list[str]:
    """Names for ``count`` more parameters that the function does not use yet."""
    taken = {p.arg for p in parameters(function)} | {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    free = [name for name in wanted if name not in taken]
    number = 2
    while len(free) < count:
        name = f"{wanted[-1]}_{number}"
        if name not in taken:
            free.append(name)
        number += 1
    return free[:count]


def add_parameters(syntax: Syntax, function: Function, names: Sequence[str]) -> tuple[int, int, str] | None:
    """The edit (start, end, text) that adds parameters after the last positional one."""
    given = positional(function)
    text = ", ".join(names)
    if given:
        last = given[-1]
        if function.args.defaults or function.args.vararg is not None:
            return None
        end = syntax.span(last)[1]
        return end, end, f", {text}"
    start, end = _parameter_gap(syntax, function)
    if start < 0:
        return None
    rest = syntax.text[start:end].strip()
    lead = " " if isinstance(function, ast.Lambda) and syntax.text[start - 1] != " " else ""
    return start, start, lead + text + (", " if rest else "")


def _parameter_gap(syntax: Syntax, function: Function) -> tuple[int, int]:
    """Where the parameters of a function without positional ones stand."""
    start, _ = syntax.span(function)
    if isinstance(function, ast.Lambda):
        at = start + len("lambda")
        return at, syntax.text.index(":", at)
    for token in syntax.tokens_in(start, syntax.span(function)[1]):
        if token.string == "(":
            return token.end, syntax.text.index(")", token.end)
    return -1, -1


def remove_parameter(syntax: Syntax, function: Function, parameter: ast.arg) -> tuple[int, int]:
    """The span to delete for a parameter, with its comma."""
    given = positional(function)
    index = given.index(parameter)
    start, end = syntax.span(parameter)
    if index + 1 < len(given):
        return start, syntax.span(given[index + 1])[0]
    if index > 0:
        return syntax.span(given[index - 1])[1], end
    return start, end
