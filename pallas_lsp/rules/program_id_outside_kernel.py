"""
## What it does
Finds `pl.program_id` and `pl.num_programs` where no kernel is running.

## Why it is wrong
The two tell where in the grid a run of the kernel is. Outside of a kernel there is no grid: the function that launches
runs once. An index map gets the grid's indices as its arguments.

## Example
```python
def rows(x):
    pid = pl.program_id(0)
    return pl.pallas_call(functools.partial(kernel, offset=pid), grid=(4,), ...)(x)
```

## Use instead
```python
def kernel(x_ref, o_ref):
    pid = pl.program_id(0)
    ...
```

## Fix safety
Moving the call into the kernel is a suggestion.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`axis_frame` in `jax/_src/pallas/core.py`: an assertion without a message.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.capture_fixes import remove_named
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.launches import launch_nodes
from pallas_lsp.source.syntax import PARTIAL, parameters

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
SITES = (("jax/_src/pallas/core.py", "axis_frame"),)

_FUNCTIONS = ("program_id", "num_programs", "program_id_bind_with_trace", "_num_programs_bind_with_trace")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/core.py", "axis_frame"):
        return None
    if not passed_through(fault, "jax/_src/pallas/primitives.py", *_FUNCTIONS):
        return None
    line = line_of(fault, context)
    if line is None:
        return None
    called = short(line.syntax.source(line.node), 40)
    counts = called.startswith("pl.num_programs") or "num_programs" in called
    what = "how many runs an axis of the grid has" if counts else "which run of the kernel this is"
    message = (
        f"`{called}` is called outside of a kernel, but it tells {what}. Call it in the kernel's body; an index map "
        "gets the grid's indices as its arguments."
    )
    return finding(__name__, fault, context, line.location, message, _related(line), _fixes(line))


def _related(line: Line) -> Iterator[Related]:
    function = line.syntax.function(line.node)
    for call in launch_nodes(line.syntax.text):
        if line.syntax.function(call) is function and function is not None:
            yield Related(line.at(call.func), "The kernel is launched here.")
            return


def _fixes(line: Line) -> Iterator[Fix | None]:
    """Move ``pid = pl.program_id(0)`` into the kernel that uses ``pid``."""
    syntax, statement = line.syntax, line.statement
    if not isinstance(statement, ast.Assign) or statement.value is not line.node or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    holder = syntax.function(statement)
    if not isinstance(target, ast.Name) or not isinstance(holder, ast.FunctionDef) or statement not in holder.body:
        return
    uses = [use for use in syntax.uses(target) if use is not target]
    editor = Editor(line.path, syntax)
    editor.remove_statement(statement, holder.body)
    keyword = _bound_by(line, uses)
    if keyword is not None:
        call, given = keyword
        kernel = syntax.callee(call.args[0])
        if not isinstance(kernel, ast.FunctionDef) or given.arg not in [p.arg for p in parameters(kernel)]:
            return
        if not remove_named(editor, kernel, str(given.arg)):
            return
        if len(call.keywords) == 1 and len(call.args) == 1:
            editor.replace(call, syntax.source(call.args[0]))
        else:
            editor.remove_argument(call, given)
        editor.add_first(kernel, f"{given.arg} = {syntax.source(line.node)}")
        yield suggested(f"Call it in the kernel `{kernel.name}`", editor)
        return
    inner = {syntax.function(use) for use in uses}
    if len(inner) == 1 and uses:
        kernel = inner.pop()
        if isinstance(kernel, ast.FunctionDef) and kernel is not holder:
            editor.add_first(kernel, syntax.source(statement))
            yield suggested(f"Call it in the kernel `{kernel.name}`", editor)


def _bound_by(line: Line, uses: list[ast.Name]) -> tuple[ast.Call, ast.keyword] | None:
    """The keyword of ``functools.partial`` that the only use of a name is given to."""
    if len(uses) != 1:
        return None
    keyword = line.syntax.parent(uses[0])
    call = line.syntax.parent(keyword) if isinstance(keyword, ast.keyword) else None
    if isinstance(keyword, ast.keyword) and isinstance(call, ast.Call) and line.syntax.dotted(call.func) in PARTIAL:
        return (call, keyword) if call.args else None
    return None
