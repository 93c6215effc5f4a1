"""
## What it does
Finds kernels that return something.

## Why it is wrong
A kernel writes its results into its output refs and returns nothing; jax would have to drop the value.

## Example
```python
def kernel(x_ref, o_ref):
    return x_ref[...] * 2
```

## Use instead
```python
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
```

## Fix safety
The fixes are suggestions: the value is stored into the output ref where the kernel never stored into it, or is not
returned.

## Applies to
`pl.pallas_call` and `pl.kernel` on all backends; jax 0.10, 0.11 and 0.12.

## Source
`_trace_kernel_to_jaxpr` in `jax/_src/pallas/pallas_call.py` and `_mpmd_map` in `jax/_src/pallas/mpmd.py`, "should
return None".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches",)
SITES = (
    ("jax/_src/pallas/pallas_call.py", "_trace_kernel_to_jaxpr"),
    ("jax/_src/pallas/mpmd.py", "_mpmd_map.<locals>.wrapper"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    here = raised_in(fault, "jax/_src/pallas/pallas_call.py", "_trace_kernel_to_jaxpr")
    here = here or raised_in(fault, "jax/_src/pallas/mpmd.py", "wrapper")
    if not here or "should return None" not in fault.message:
        return None
    launch = launch_of(fault, context)
    found = launch.body() if launch is not None else None
    if launch is None or found is None:
        location = launch.name if launch is not None else context.locate(fault)
        message = "This kernel returns a value. A kernel writes into its output refs and returns nothing."
        return finding(__name__, fault, context, location, message)
    path, syntax, function = found
    returned = _returned(syntax, function)
    location = Location(path, syntax.range(returned)) if returned is not None else launch.name
    what = f"`{short(context.source(location))}`" if returned is not None else "a value"
    message = f"The kernel returns {what}, but a kernel returns nothing: it stores its results into its output refs."
    return finding(__name__, fault, context, location, message, (), _fixes(launch, path, syntax, function, returned))


def _returned(syntax: Syntax, function: Function) -> ast.expr | None:
    if isinstance(function, ast.Lambda):
        return function.body
    values = [r.value for r in syntax.returns(function) if r.value is not None]
    values = [v for v in values if not (isinstance(v, ast.Constant) and v.value is None)]
    return values[0] if values else None


def _fixes(
    launch: Launch, path: str, syntax: Syntax, function: Function, returned: ast.expr | None
) -> Iterator[Fix | None]:
    if isinstance(function, ast.Lambda) or returned is None:
        return
    statement = syntax.statement(returned)
    if statement is None:
        return
    output = _unwritten_output(launch, syntax, function)
    if output is not None:
        editor = Editor(path, syntax)
        editor.replace(statement, f"{output}[...] = {syntax.source(returned)}")
        yield suggested(f"Store the value into `{output}` instead", editor)
    editor = Editor(path, syntax)
    if isinstance(returned, ast.Name | ast.Constant | ast.Attribute | ast.Subscript | ast.Tuple):
        block = getattr(syntax.parent(statement), "body", [statement])
        editor.remove_statement(statement, block if statement in block else [statement])
        yield suggested("Return nothing", editor)
    else:
        editor.replace(statement, syntax.source(returned))
        yield suggested("Do not return the value", editor)


def _unwritten_output(launch: Launch, syntax: Syntax, function: Function) -> str | None:
    """The parameter of the only output, where the kernel never stores into it."""
    inputs, outputs = launch.facts.get("inputs"), launch.facts.get("outputs")
    given = positional(function)
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(outputs) != 1:
        return None
    if len(inputs) >= len(given):
        return None
    parameter = given[len(inputs)]
    return parameter.arg if not syntax.uses(parameter) else None
