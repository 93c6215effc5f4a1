"""
## What it does
Finds kernels, bodies of pipelines and of scopes that are called where they should be passed, and functions that make a
kernel and are passed where they should be called.

## Why it is wrong
`plgpu.kernel`, `pl.pallas_call`, `emit_pipeline`, `pl.run_scoped` and `pl.run_state` call the function themselves, with
refs. `plgpu.kernel(body(x), ...)` calls it beforehand, with an array or nothing, and hands over None.

## Example
```python
plgpu.kernel(body(x), out_type=x)(x)
```

## Use instead
```python
plgpu.kernel(body, out_type=x)(x)
```

## Fix safety
Safe where the function is called with nothing or with keywords only, which `functools.partial` then binds; a suggestion
where arguments are taken away.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Python calls the function before any code of jax runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Related, Severity, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.functions import head_location, positional
from pallas_lsp.rules.shared.makers import own_function, returned, taking
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches", "pipelines")
SPECIFICITY = 70
_PARTIAL = ("functools", "functools")


def judge(fault: Fault, context: Context) -> Finding | None:
    """A fault that comes from a body that was called: told of at that place."""
    if fault.silent:
        return None
    for frame in reversed(context.frames(fault)):
        syntax = context.syntax(frame.path)
        missing = fault.message if fault.exception.endswith("TypeError") else ""
        for node, text, related, fix in _wrong(frame.path, syntax, missing) if syntax is not None else ():
            outer = syntax.statement(node) if syntax is not None else None
            if outer is not None and outer.lineno <= frame.line <= (outer.end_lineno or outer.lineno):
                assert syntax is not None
                location = Location(frame.path, syntax.range(node))
                return finding(__name__, fault, context, location, text, related, [fix])
    return None


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    del context
    for node, text, related, fix in _wrong(path, syntax):
        yield Finding(
            rule_name(__name__),
            Location(path, syntax.range(node)),
            text,
            Severity.ERROR,
            stage=Stage.READ,
            related=tuple(related),
            fixes=(fix,) if fix is not None else (),
        )


def _wrong(path: str, syntax: Syntax, refused: str = "") -> Iterable[tuple[ast.expr, str, list[Related], Fix | None]]:
    """``refused``: what Python said of a call that lacks arguments; such a one is wrong whatever it would return."""
    for call, name, given in taking(syntax):
        taker = name.rpartition(".")[2]
        if isinstance(given, ast.Call) and given in (*call.args, *(k.value for k in call.keywords)):
            function = own_function(syntax, given.func)
            lacks = function is not None and f"{function.name}() missing " in refused
            if function is None or not (lacks or returned(syntax, function) == []):
                continue
            why = "without the arguments that it takes" if lacks else "which returns nothing"
            text = (
                f"`{short(syntax.source(given), 40)}` calls `{function.name}` here, {why}: `{taker}` takes the "
                f"function itself, `{short(syntax.source(given.func), 40)}`, and calls it with refs."
            )
            related = [Related(head_location(path, syntax, function), "This is called.")]
            yield given, text, related, _passed(path, syntax, given)
        elif isinstance(given, ast.Name):
            maker = own_function(syntax, given)
            inner = _made(syntax, maker) if maker is not None else None
            if maker is None or inner is None:
                continue
            text = (
                f"`{given.id}` returns the function `{inner}`, and is none itself: `{taker}` takes what it returns, "
                f"`{given.id}(...)`."
            )
            related = [Related(head_location(path, syntax, maker), "This returns a function.")]
            yield given, text, related, _called(path, syntax, given, maker)


def _made(syntax: Syntax, function: ast.FunctionDef) -> str | None:
    """The function that a function makes and returns."""
    results = returned(syntax, function) or []
    names = {each.id for each in results if isinstance(each, ast.Name)}
    if len(names) != 1 or len(names) != len(results):
        return None
    (name,) = names
    own = [each for each in function.body if isinstance(each, ast.FunctionDef) and each.name == name]
    return name if len(own) == 1 and len(results) == 1 else None


def _passed(path: str, syntax: Syntax, given: ast.Call) -> Fix | None:
    function = syntax.source(given.func)
    edits = Editor(path, syntax)
    title = f"Pass the function: `{short(function, 40)}`"
    if any(each.arg is None for each in given.keywords) or any(isinstance(each, ast.Starred) for each in given.args):
        return None
    if not given.keywords:
        edits.delete(syntax.span(given.func)[1], syntax.span(given)[1])
        return suggested(title, edits) if given.args else safe(title, edits)
    partial = edits.spell("functools.partial", given, _PARTIAL)
    if given.args or partial is None:
        return None
    edits.replace(given, f"{partial}({function}, {', '.join(syntax.source(each) for each in given.keywords)})")
    return safe(f"Bind them: `{partial}({short(function, 40)}, ...)`", edits)


def _called(path: str, syntax: Syntax, given: ast.Name, maker: ast.FunctionDef) -> Fix | None:
    if len(positional(maker)) > len(maker.args.defaults) or any(d is None for d in maker.args.kw_defaults):
        return None
    edits = Editor(path, syntax)
    edits.insert(syntax.span(given)[1], "()")
    return safe(f"Call it: `{given.id}()`", edits)
