"""
## What it does
Finds statements that only name what they mean to do: `copy.wait` without parentheses, `pl.when(...)`, `pl.loop(...)`
and `pl.core_map(...)` that no function is handed to, a pipeline or a launch that is made and not called.

## Why it is wrong
`pl.when(condition)` makes a decorator, `pltpu.emit_pipeline(...)` and `pl.pallas_call(...)` make functions. As a
statement of its own, each is made and thrown away, and the kernel goes on as if it were not there. The same goes for a
method that is named and not called.

## Example
```python
copy.start()
copy.wait
o_ref[...] = buf[...]
```

## Use instead
```python
copy.start()
copy.wait()
o_ref[...] = buf[...]
```

## Fix safety
Calling a method, or handing the function defined just before to `pl.when`, is what was meant: safe. The operands of a
pipeline are suggested, where the kernel has as many refs as the pipeline has specs.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`when` and `loop` in `jax/_src/pallas/helpers.py`, `core_map` and `pallas_call`, which return functions. The rule reads
the text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Severity, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import safe, suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.uncalled import DECORATORS, LAUNCHES, uncalled
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches", "copies", "pipelines")


def judge(fault: Fault, context: Context) -> Finding | None:
    """Nothing that jax raises: it is found by reading."""
    del fault, context
    return None


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    del context
    if "pallas" not in syntax.text:
        return
    for node in uncalled(syntax):
        shown = short(syntax.source(node.func if isinstance(node, ast.Call) else node), 40)
        if isinstance(node, ast.Attribute):
            text, fix = f"`{shown}` is named here, but not called: nothing happens.", _called(path, syntax, node)
        elif syntax.dotted(node.func) in DECORATORS:
            text = f"`{shown}(...)` is a decorator, and nothing is decorated with it here: it does nothing."
            fix = _decorated(path, syntax, node)
        else:
            what = "launch" if syntax.dotted(node.func) in LAUNCHES else "pipeline"
            text = f"`{shown}(...)` makes a function, which nothing calls: call it with the {what}'s operands."
            fix = _with_refs(path, syntax, node)
        whole = syntax.range(node)
        place = whole if whole.start.line == whole.end.line or not isinstance(node, ast.Call) else None
        where = Location(path, place or syntax.range(getattr(node, "func", node)))
        fixes = (fix,) if fix is not None else ()
        yield Finding(rule_name(__name__), where, text, Severity.WARNING, stage=Stage.READ, fixes=fixes)


def _called(path: str, syntax: Syntax, node: ast.Attribute) -> Fix | None:
    editor = Editor(path, syntax)
    editor.insert(syntax.span(node)[1], "()")
    return safe(f"Call it: `{short(syntax.source(node), 40)}()`", editor)


def _decorated(path: str, syntax: Syntax, node: ast.Call) -> Fix | None:
    """``def init(): ...`` and ``pl.when(first)`` -> ``pl.when(first)(init)``."""
    statement = syntax.statement(node)
    owner = syntax.parent(statement) if statement is not None else None
    block = getattr(owner, "body", None)
    if owner is None or not isinstance(block, list) or statement not in block or not block.index(statement):
        return None
    before = block[block.index(statement) - 1]
    if not isinstance(before, ast.FunctionDef) or before.decorator_list:
        return None
    used = any(isinstance(each, ast.Name) and each.id == before.name for each in ast.walk(owner))
    if used or len(positional(before)) > 1:
        return None
    editor = Editor(path, syntax)
    editor.insert(syntax.span(node)[1], f"({before.name})")
    return safe(f"Hand it `{before.name}`", editor)


def _with_refs(path: str, syntax: Syntax, node: ast.Call) -> Fix | None:
    """A pipeline called with all refs of the kernel, where these are as many as its specs."""
    function = syntax.function(node)
    specs = [syntax.argument(node, None, name) for name in ("in_specs", "out_specs")]
    count = 0
    for spec in specs:
        value = syntax.value(spec) if spec is not None else None
        count += len(value.elts) if isinstance(value, ast.List | ast.Tuple) else 1 if spec is not None else 0
    if function is None or syntax.dotted(node.func) in LAUNCHES or None in specs:
        return None
    names = [parameter.arg for parameter in positional(function)]
    if len(names) != count:
        return None
    editor = Editor(path, syntax)
    editor.insert(syntax.span(node)[1], f"({', '.join(names)})")
    return suggested(f"Call it with {', '.join(f'`{name}`' for name in names)}", editor)
