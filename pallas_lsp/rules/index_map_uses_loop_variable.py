"""
## What it does
Finds block specs that are made in a loop or comprehension and kept, whose index maps use the loop's variable.

## Why it is wrong
An index map is called when the kernel is launched, after the loop: a lambda looks its variables up then, so that all
specs use the last value. jax does not complain, the kernel reads the wrong blocks.

## Example
```python
specs = [pl.BlockSpec((8, 128), lambda i: (i, column)) for column in range(2)]
```

## Use instead
```python
specs = [pl.BlockSpec((8, 128), lambda i, column=column: (i, column)) for column in range(2)]
```

## Fix safety
Binding the value as a default is safe.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Python's rule for names in nested functions: they are looked up when the function is called. The rule reads the text;
specs that are used up within the iteration that made them are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Location, Severity, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import safe
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_KEEPING = ("append", "insert", "add")


def judge(fault: Fault, context: Context) -> Finding | None:
    """Nothing that jax raises: it is found by reading."""
    del fault, context
    return None


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    del context
    if "BlockSpec" not in syntax.text:
        return
    for call in syntax.nodes:
        if not isinstance(call, ast.Call) or not _is_block_spec(syntax, call):
            continue
        index_map = syntax.argument(call, 1, "index_map")
        if isinstance(index_map, ast.Lambda):
            for name in _late_names(syntax, call, index_map):
                yield _found(path, syntax, index_map, name)
                break


def _is_block_spec(syntax: Syntax, call: ast.Call) -> bool:
    dotted = syntax.dotted(call.func) or ""
    return dotted.startswith("jax.experimental.pallas") and dotted.endswith(".BlockSpec")


def _late_names(syntax: Syntax, call: ast.Call, index_map: ast.Lambda) -> Iterator[ast.Name]:
    """The variables of a loop around a spec that its index map looks up, where the spec outlives the iteration."""
    for loop in syntax.ancestors(call):
        if isinstance(loop, (*FUNCTIONS, ast.ClassDef)):
            return
        if isinstance(loop, _COMPREHENSIONS) and _is_element(syntax, call, loop):
            targets = [generator.target for generator in loop.generators]
        elif isinstance(loop, ast.For) and _is_kept(syntax, call, loop):
            targets = [loop.target]
        else:
            continue
        names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        own = {argument.arg for argument in ast.walk(index_map.args) if isinstance(argument, ast.arg)}
        for part in ast.walk(index_map.body):
            if isinstance(part, ast.Name) and part.id in names - own:
                yield part


def _is_element(syntax: Syntax, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a spec is what a comprehension collects, by itself or in a tuple."""
    node: ast.AST = call
    while (parent := syntax.parent(node)) is not loop:
        if not isinstance(parent, ast.Tuple | ast.List | ast.Dict):
            return False
        node = parent
    return node in (getattr(loop, "elt", None), getattr(loop, "value", None))


def _is_kept(syntax: Syntax, call: ast.Call, loop: ast.For) -> bool:
    """Whether a spec goes into a container that was there before the loop and is not used within it."""
    statement = syntax.statement(call)
    kept: ast.expr | None = None
    parent = syntax.parent(call)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in _KEEPING:
        kept = parent.func.value
    elif (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and isinstance(statement.targets[0], ast.Subscript)
    ):
        kept = statement.targets[0].value
    if not isinstance(kept, ast.Name):
        return False
    uses = [part for each in loop.body for part in ast.walk(each) if isinstance(part, ast.Name) and part.id == kept.id]
    return all(syntax.statement(use) is statement or _only_collects(syntax, use) for use in uses)


def _only_collects(syntax: Syntax, use: ast.Name) -> bool:
    parent = syntax.parent(use)
    return isinstance(use.ctx, ast.Load) and isinstance(parent, ast.Attribute) and parent.attr in _KEEPING


def _found(path: str, syntax: Syntax, index_map: ast.Lambda, name: ast.Name) -> Finding:
    editor = Editor(path, syntax)
    given = [*index_map.args.posonlyargs, *index_map.args.args]
    if given and not index_map.args.defaults and index_map.args.vararg is None:
        editor.insert(syntax.span(given[-1])[1], f", {name.id}={name.id}")
    fix = safe(f"Bind the value: `{name.id}={name.id}`", editor)
    return Finding(
        rule_name(__name__),
        Location(path, syntax.range(name)),
        f"`{name.id}` is looked up when this index map is called, after the loop: all specs use its last value.",
        Severity.WARNING,
        stage=Stage.READ,
        fixes=(fix,) if fix is not None else (),
    )
