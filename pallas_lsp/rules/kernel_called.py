"""
## What it does
Finds launches, `run_scoped` and `run_state` that are given the result of calling a function, in place of the function.

## Why it is wrong
`pl.pallas_call(kernel(x, o), ...)` calls the kernel at once, with whatever arguments are there, and launches what it
returns, which is `None`. The launch calls the kernel itself, with refs; so does `pl.run_scoped(body(), ...)`.

## Example
```python
pl.pallas_call(kernel(x, out), out_shape=out)(x)
```

## Use instead
```python
pl.pallas_call(kernel, out_shape=out)(x)
```

## Fix safety
A suggestion: passing the kernel is right, but the arguments may have been meant for something. Keyword arguments are
bound with `functools.partial`. A call without any argument is safely replaced.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
The rule reads the text; only functions of the same file count, which return nothing or are called without arguments
that they need.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import PARTIAL, Syntax

SINCE = "0.1.0"
SPECIFICITY = 80
CONSTRUCTS = ("kernel bodies and launches",)

_PALLAS = "jax.experimental.pallas"
_LAUNCHES = (f"{_PALLAS}.pallas_call", f"{_PALLAS}.mosaic_gpu.kernel", f"{_PALLAS}.kernel")
_SCOPES = (f"{_PALLAS}.run_scoped", f"{_PALLAS}.run_state")


def judge(fault: Fault, context: Context) -> Finding | None:
    """Python's own refusal of the call, whose arguments are no refs."""
    place = context.locate(fault)
    syntax = context.syntax(place.path) if fault.exception.endswith("TypeError") else None
    if syntax is None:
        return None
    for found in read(place.path, syntax, context):
        if found.location.range.start.line == place.range.start.line:
            fixes = found.fixes
            return finding(__name__, fault, context, found.location, found.message, (), fixes)
    return None


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    del context
    if "pallas" not in syntax.text:
        return
    for launch in syntax.nodes:
        called = syntax.dotted(launch.func) if isinstance(launch, ast.Call) else None
        if not isinstance(launch, ast.Call) or called not in (*_LAUNCHES, *_SCOPES):
            continue
        given = launch.args[0] if launch.args else syntax.argument(launch, None, "kernel")
        while isinstance(given, ast.Call) and syntax.dotted(given.func) in PARTIAL and given.args:
            given = given.args[0]
        function = (
            syntax.value(given.func) if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) else None
        )
        if isinstance(given, ast.Call) and isinstance(function, ast.FunctionDef) and not function.decorator_list:
            lacking = _lacks_arguments(given, function)
            if not lacking and (called in _SCOPES or not _returns_nothing(syntax, function)):
                continue
            name = short(syntax.source(given.func), 40)
            text = f"This calls `{name}` here and launches what it returns, `None`: pass the kernel itself, `{name}`."
            if lacking:
                text = f"This calls `{name}` here, without its arguments: pass the function itself, `{name}`."
            fix = _passed(path, syntax, given)
            fixes = (fix,) if fix is not None else ()
            where = Location(path, syntax.range(given))
            yield Finding(rule_name(__name__), where, text, stage=Stage.READ, fixes=fixes)


def _lacks_arguments(call: ast.Call, function: ast.FunctionDef) -> bool:
    """Whether the call fails for want of arguments."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return False
    names = [parameter.arg for parameter in positional(function)]
    required = names[: len(names) - len(function.args.defaults)]
    given = {*names[: len(call.args)], *(each.arg for each in call.keywords)}
    return not set(required) <= given


def _returns_nothing(syntax: Syntax, function: ast.FunctionDef) -> bool:
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in syntax.own_nodes(function))
    return not yields and all(each.value is None for each in syntax.returns(function))


def _passed(path: str, syntax: Syntax, call: ast.Call) -> Fix | None:
    editor = Editor(path, syntax)
    name = syntax.source(call.func)
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    if call.keywords:
        partial = editor.spell("functools.partial", call, ("functools", "functools"))
        if partial is None:
            return None
        bound = ", ".join(syntax.source(keyword) for keyword in call.keywords)
        editor.replace(call, f"{partial}({name}, {bound})")
    else:
        editor.replace(call, name)
    made = suggested if call.args or call.keywords else safe
    return made(f"Pass `{short(name, 40)}`", editor)
