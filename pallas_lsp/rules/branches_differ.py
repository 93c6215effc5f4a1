"""
## What it does
Finds branches of `jax.lax.cond` and `jax.lax.switch` that return different types, and functions under `@pl.when` that
return something.

## Why it is wrong
Which branch runs is known only when the kernel runs, so all must return the same structure, shapes and dtypes. The
other branch of `@pl.when` does nothing and returns nothing.

## Example
```python
jax.lax.cond(first, lambda: x_ref[...], lambda: jnp.zeros((8, 128), jnp.bfloat16))   # x_ref holds float32
```

## Use instead
```python
jax.lax.cond(first, lambda: x_ref[...], lambda: jnp.zeros((8, 128), jnp.float32))
```

## Fix safety
The fixes are suggestions: converting one branch to the type of the other, or returning nothing.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_check_branch_outputs` in `jax/_src/lax/control_flow/conditionals.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import result
from pallas_lsp.rules.shared.stores import parenthesised
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
SITES = (("jax/_src/lax/control_flow/conditionals.py", "_check_branch_outputs"),)

_TYPES = re.compile(r"has type (\w+\[[^\]]*\])\S* but the corresponding output of \S+ has type (\w+\[[^\]]*\])")
_WHEN = "jax.experimental.pallas.when"
_NUMPY = ("jax.numpy", "jnp")


def judge(fault: Fault, context: Context) -> Finding | None:
    file = "jax/_src/lax/control_flow/conditionals.py"
    if not passed_through(fault, file, "_check_branch_outputs", "_check_tree_and_avals"):
        return None
    line = line_of(fault, context)
    if line is None:
        return None
    call = line.node if isinstance(line.node, ast.Call) else None
    name = line.syntax.dotted(call.func) if call is not None else None
    if name == _WHEN or passed_through(fault, "jax/_src/pallas/helpers.py", "_wrapped"):
        return _when(fault, context, line)
    branches = _branches(line, call, name) if call is not None else []
    returned = [result(line.syntax, f) if f is not None else None for f in branches]
    match = _TYPES.search(fault.message)
    what = "different types" if match is None else f"{match[1]} and {match[2]}"
    if match is None:
        what = "different structures"
    mark = returned[1] if len(returned) > 1 and returned[1] is not None else None
    location = line.at(mark) if mark is not None else line.location
    message = f"The branches return {what}, but all branches must return the same: which one runs is not known before."
    related = []
    if returned and returned[0] is not None:
        related.append(
            Related(line.at(returned[0]), f"This branch returns {match[1]}." if match else "The other branch.")
        )
    fixes = _fixes(line, returned, match) if match is not None else ()
    return finding(__name__, fault, context, location, message, related, fixes)


def _branches(line: Line, call: ast.Call, name: str | None) -> list[Function | None]:
    given = line.syntax.arguments(call)
    if name == "jax.lax.switch":
        listed = given.get(1, "branches")
        value = line.syntax.value(listed) if listed is not None else None
        nodes: list[ast.expr | None] = list(value.elts) if isinstance(value, ast.List | ast.Tuple) else []
    else:
        nodes = [given.get(1, "true_fun"), given.get(2, "false_fun")]
    return [line.syntax.callee(node) if node is not None else None for node in nodes]


def _when(fault: Fault, context: Context, line: Line) -> Finding | None:
    function: ast.AST | None = line.syntax.parent(line.node)
    while function is not None and not isinstance(function, ast.stmt):
        function = line.syntax.parent(function)
    returns = line.syntax.returns(function) if isinstance(function, ast.FunctionDef) else []
    values = [r for r in returns if r.value is not None]
    location = line.at(values[0]) if values else line.location
    message = "A function under `@pl.when` must return nothing: where its condition does not hold, it does not run."
    fixes: list[Fix | None] = []
    if values and isinstance(function, ast.FunctionDef) and values[0] in function.body:
        editor = Editor(line.path, line.syntax)
        value = values[0].value
        assert value is not None
        if isinstance(value, ast.Call):
            editor.replace(values[0], line.syntax.source(value))
        else:
            editor.remove_statement(values[0], function.body)
        fixes.append(suggested("Return nothing", editor))
    return finding(__name__, fault, context, location, message, (), fixes)


def _fixes(line: Line, returned: list[ast.expr | None], match: re.Match[str]) -> Iterator[Fix | None]:
    first, second = match[1].partition("["), match[2].partition("[")
    if first[2] != second[2] or len(returned) != 2:
        return
    for node, dtype in ((returned[1], first[0]), (returned[0], second[0])):
        if node is None or isinstance(node, ast.Tuple | ast.List):
            continue
        editor = Editor(line.path, line.syntax)
        spelled = editor.spell(f"jax.numpy.{dtype}", node, _NUMPY)
        if spelled is None:
            continue
        if isinstance(node, ast.Constant):
            editor.replace(node, f"{spelled}({line.syntax.source(node)})")
        else:
            editor.replace(node, f"{parenthesised(line.syntax, node)}.astype({spelled})")
        yield suggested(f"Return {dtype} from this branch: `{short(line.syntax.source(node), 30)}`", editor)
