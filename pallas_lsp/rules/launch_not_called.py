"""
## What it does
Finds launches, pipelines and states that are made and never called: their result is dropped, or used as if it were an
array.

## Why it is wrong
`plgpu.kernel(body, ...)`, `pl.pallas_call(kernel, ...)`, `emit_pipeline(body, ...)` and `pl.run_state(body)` do nothing
by themselves: they return a function, which runs the kernel or the pipeline when it is called.

## Example
```python
plgpu.emit_pipeline(step, grid=(4,), in_specs=[spec], out_specs=[spec])
```

## Use instead
```python
plgpu.emit_pipeline(step, grid=(4,), in_specs=[spec], out_specs=[spec])(x_gmem, o_gmem)
```

## Fix safety
A suggestion: the function is called with the parameters of the one around it, where their number fits.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
The text alone shows it; jax is not asked for anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Severity, Stage
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.makers import LAUNCHES, inside, making
from pallas_lsp.rules.shared.silent import checked, silent_finding
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import FUNCTIONS, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches", "pipelines")
SPECIFICITY = 70
_OF_ARRAYS = (
    "shape",
    "dtype",
    "astype",
    "T",
    "sum",
    "mean",
    "max",
    "min",
    "reshape",
    "at",
    "ndim",
    "block_until_ready",
)


def judge(fault: Fault, context: Context) -> Finding | None:
    if checked(fault, "output-never-written"):
        return _unwritten(fault, context)
    if fault.silent or "function" not in fault.message:
        return None
    for frame in reversed(context.frames(fault)):
        syntax = context.syntax(frame.path)
        for call, node in _wrong(syntax) if syntax is not None else ():
            assert syntax is not None
            if node.lineno <= frame.line <= (node.end_lineno or node.lineno):
                where = Location(frame.path, syntax.range(node))
                fix = _fix(frame.path, syntax, call)
                return finding(__name__, fault, context, where, _text(syntax, call, node), (), [fix])
    return None


def _unwritten(fault: Fault, context: Context) -> Finding | None:
    """An output that nothing is stored to, since the pipeline that would do so does not run."""
    launch = launch_of(fault, context)
    body = launch.body() if launch is not None else None
    if body is None:
        return None
    path, syntax, function = body
    for call, node in _wrong(syntax):
        if inside(syntax, call, function):
            where = Location(path, syntax.range(node))
            text, fix = _text(syntax, call, node), _fix(path, syntax, call)
            return silent_finding(__name__, fault, context, where, text, (), [fix], Severity.ERROR)
    return None


def read(path: str, syntax: Syntax, context: Context) -> Iterator[Finding]:
    del context
    for call, node in _wrong(syntax):
        fix = _fix(path, syntax, call)
        yield Finding(
            rule_name(__name__),
            Location(path, syntax.range(node)),
            _text(syntax, call, node),
            Severity.ERROR,
            stage=Stage.READ,
            fixes=(fix,) if fix is not None else (),
        )


def _text(syntax: Syntax, call: ast.Call, node: ast.expr) -> str:
    name = short(syntax.source(call.func), 40)
    if node is call:
        return f"This does nothing: `{name}` returns a function, which has to be called."
    return (
        f"`{short(syntax.source(node), 40)}` is the function that `{name}` returns, and no array: it has to be called."
    )


def _wrong(syntax: Syntax) -> Iterable[tuple[ast.Call, ast.expr]]:
    """(call, expression at fault) for each function that is made and not called."""
    for call in making(syntax):
        parent = syntax.parent(call)
        if isinstance(parent, ast.Expr):
            # One that is expected to be refused is not called.
            if not any(isinstance(each, ast.With) for each in syntax.ancestors(call)):
                yield call, call
        elif _as_array(syntax, call):
            yield call, call
        elif isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            target = parent.targets[0]
            bindings = syntax.scope(target).bindings.get(target.id, [])
            uses = syntax.uses(target) if len(bindings) == 1 else []
            wrong = next((use for use in uses if _as_array(syntax, use)), None)
            if isinstance(wrong, ast.expr):
                yield call, wrong


def _as_array(syntax: Syntax, node: ast.AST) -> bool:
    """Whether an expression is used as only an array can be."""
    parent = syntax.parent(node)
    if isinstance(parent, ast.BinOp):
        return True
    if isinstance(parent, ast.Subscript):
        return parent.value is node
    if isinstance(parent, ast.Attribute):
        return parent.attr in _OF_ARRAYS
    if isinstance(parent, ast.Call) and node in parent.args:
        return (syntax.dotted(parent.func) or "").startswith("jax.numpy.")
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)


def _fix(path: str, syntax: Syntax, call: ast.Call) -> Fix | None:
    """The call, with the parameters of the function around it, where their number fits."""
    function = syntax.function(call)
    if not isinstance(function, FUNCTIONS) or isinstance(function, ast.Lambda):
        return None
    names = [each.arg for each in positional(function)]
    wanted = _wanted(syntax, call)
    if wanted is None or wanted > len(names) or (syntax.called(call) in LAUNCHES and wanted != len(names)):
        return None
    edits = Editor(path, syntax)
    given = f"({', '.join(names[:wanted])})"
    edits.insert(syntax.span(call)[1], given)
    return suggested(f"Call it: `{given}`", edits)


def _wanted(syntax: Syntax, call: ast.Call) -> int | None:
    """How many arguments the function takes."""
    given = syntax.arguments(call)
    if syntax.called(call) in LAUNCHES:
        body = given.get(0, "body") or given.get(0, "kernel")
        function = syntax.callee(body) if body is not None else None
        scratch = given.keywords.get("scratch_types") or given.keywords.get("scratch_shapes")
        out = given.keywords.get("out_type") or given.keywords.get("out_shape")
        if function is None or out is None or isinstance(out, ast.List | ast.Tuple):
            return None
        if scratch is not None and not isinstance(scratch, ast.List | ast.Tuple):
            return None
        return len(positional(function)) - 1 - (len(scratch.elts) if scratch is not None else 0)
    specs = [given.keywords.get("in_specs"), given.keywords.get("out_specs")]
    if not all(each is None or isinstance(each, ast.List | ast.Tuple) for each in specs):
        return None
    return sum(len(each.elts) for each in specs if isinstance(each, ast.List | ast.Tuple)) or None
