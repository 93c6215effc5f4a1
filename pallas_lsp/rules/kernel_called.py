"""
## What it does
Finds launches that are given the result of calling the kernel, in place of the kernel.

## Why it is wrong
`pl.pallas_call(kernel(x, o), ...)` calls the kernel at once, with whatever arguments are there, and launches what it
returns, which is `None`. The launch calls the kernel itself, with refs.

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
bound with `functools.partial`.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
The rule reads the text; only functions of the same file that return nothing count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import PARTIAL, Syntax

SINCE = "0.1.0"
SPECIFICITY = 80
CONSTRUCTS = ("kernel bodies and launches",)

_PALLAS = "jax.experimental.pallas"
_LAUNCHES = (f"{_PALLAS}.pallas_call", f"{_PALLAS}.mosaic_gpu.kernel", f"{_PALLAS}.kernel")


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
        if not isinstance(launch, ast.Call) or syntax.dotted(launch.func) not in _LAUNCHES:
            continue
        given = launch.args[0] if launch.args else syntax.argument(launch, None, "kernel")
        while isinstance(given, ast.Call) and syntax.dotted(given.func) in PARTIAL and given.args:
            given = given.args[0]
        if isinstance(given, ast.Call) and _returns_nothing(syntax, given):
            name = short(syntax.source(given.func), 40)
            text = f"This calls `{name}` here and launches what it returns, `None`: pass the kernel itself, `{name}`."
            fix = _passed(path, syntax, given)
            fixes = (fix,) if fix is not None else ()
            where = Location(path, syntax.range(given))
            yield Finding(rule_name(__name__), where, text, stage=Stage.READ, fixes=fixes)


def _returns_nothing(syntax: Syntax, call: ast.Call) -> bool:
    function = syntax.value(call.func) if isinstance(call.func, ast.Name) else None
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
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
    return suggested(f"Pass `{short(name, 40)}`", editor)
