"""
## What it does
Finds loops whose steps return another type than they were given: another dtype, another shape, another number of
values, or nothing.

## Why it is wrong
`jax.lax.fori_loop`, `while_loop` and `scan` run their body again on what it returned. What goes in and what comes out
must have the same structure, shapes and dtypes, from the first step on.

## Example
```python
acc = jnp.zeros((8, 256), jnp.bfloat16)
acc = jax.lax.fori_loop(0, n, lambda i, acc: acc + x_ref[i].astype(jnp.float32), acc)
```

## Use instead
```python
acc = jnp.zeros((8, 256), jnp.float32)
acc = jax.lax.fori_loop(0, n, lambda i, acc: acc + x_ref[i].astype(jnp.float32), acc)
```

## Fix safety
The fixes are suggestions: the start value in the type of the result, or the result converted to the type of the start
value.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_check_carry_type` in `jax/_src/lax/control_flow/loops.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import head_location, result
from pallas_lsp.rules.shared.places import Spot, follow, steps
from pallas_lsp.rules.shared.stores import parenthesised
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function

SINCE = "0.1.0"
CONSTRUCTS = ("control flow",)
SITES = (("jax/_src/lax/control_flow/loops.py", "_check_carry_type"),)

_TYPES = re.compile(
    r"nput carry(?: component)?(?: at path)? ?(?P<path>[^\s\[]*(?:\[[^\]]*\])*) has type (?P<start>\w+\[[^\]]*\])\S*"
    r" but the corresponding output carry component has type (?P<end>\w+\[[^\]]*\])"
)
_TREES = re.compile(
    r"nput carry(?: component)?(?: at path)? ?(?P<path>[^\s\[]*(?:\[[^\]]*\])*) is a (?P<start>.*?) but the "
    r"corresponding component of the carry output is a (?P<end>.*?), so"
)
# name -> (position of the body, of its name, position of the start value, of its name)
_LOOPS = {
    "jax.lax.fori_loop": (2, "body_fun", 3, "init_val"),
    "jax.lax.while_loop": (1, "body_fun", 2, "init_val"),
    "jax.lax.scan": (0, "f", 1, "init"),
}
_CREATORS = {"zeros": 1, "ones": 1, "full": 2, "empty": 1, "zeros_like": 1, "ones_like": 1, "full_like": 2}
_NUMPY = ("jax.numpy", "jnp")


@dataclass(frozen=True)
class Loop:
    line: Line
    call: ast.Call
    name: str
    start: ast.expr | None
    body: Function | None


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/lax/control_flow/loops.py", "_check_carry_type"):
        return None
    line = line_of(fault, context)
    if line is None:
        return None
    loop = _loop(line)
    types, trees = _TYPES.search(fault.message), _TREES.search(fault.message)
    match = types or trees
    path = _path(match["path"], loop) if match is not None else ()
    spot, exact = None, False
    if loop is not None and loop.start is not None:
        at, rest = follow(context, line.frames, line.spot(loop.start), path)
        exact = not rest
        spot = line.spot(loop.start) if not _inside(loop.call, at) else at
        made = at
    location = spot.location if spot is not None else line.location
    called = loop.name.removeprefix("jax.lax.") if loop is not None else "The loop"
    related: list[Related] = []
    fixes: list[Fix | None] = []
    if types is not None:
        message = (
            f"`{called}` starts with {types['start']} here, but its body returns {types['end']}: what a step returns "
            "must have the type that it was given."
        )
        if loop is not None and spot is not None and exact:
            fixes = list(_type_fixes(loop, made, path, types["start"], types["end"]))
            if made.location != location:
                related.append(Related(made.location, f"The start value is made here, {types['start']}."))
    else:
        message, fixes = _structure(loop, called, match)
    if loop is not None and loop.body is not None:
        returned = result(line.syntax, loop.body)
        place = line.at(returned) if returned is not None else head_location(line.path, line.syntax, loop.body)
        related.append(
            Related(place, f"The body returns {types['end']}." if types is not None else "This is the body.")
        )
    return finding(__name__, fault, context, location, message, related, fixes)


def _loop(line: Line) -> Loop | None:
    call = line.node if isinstance(line.node, ast.Call) else line.syntax.call(line.node)
    name = line.syntax.called(call) if call is not None else None
    if call is None or name not in _LOOPS:
        return None
    body_at, body_name, start_at, start_name = _LOOPS[name]
    given = line.syntax.arguments(call)
    body, start = given.get(body_at, body_name), given.get(start_at, start_name)
    return Loop(line, call, name, start, line.syntax.callee(body) if body is not None else None)


def _path(text: str, loop: Loop | None) -> tuple[int | str, ...]:
    """The path below the start value; a counted loop carries its counter in front."""
    found = steps(text)
    return found[1:] if loop is not None and loop.name == "jax.lax.fori_loop" else found


def _inside(call: ast.Call, spot: Spot) -> bool:
    return any(node is spot.node for node in ast.walk(call))


# -- types -----------------------------------------------------------------------------------------------------------


def _type_fixes(loop: Loop, made: Spot, path: tuple[int | str, ...], start: str, end: str) -> Iterator[Fix | None]:
    value = made.syntax.value(made.node)
    if isinstance(made.node, ast.Name) and isinstance(value, ast.Call | ast.Constant):
        made = made.at(value)
    start_dtype, start_shape = _parts(start)
    end_dtype, end_shape = _parts(end)
    syntax = made.syntax
    editor = Editor(made.path, syntax)
    dtype = editor.spell(f"jax.numpy.{end_dtype}", made.node, _NUMPY)
    if dtype is None:
        return
    if start_shape == end_shape:
        if _set_dtype(editor, made, dtype):
            yield suggested(f"Start with {end_dtype}", editor)
        else:
            editor = Editor(made.path, syntax)
            source = syntax.source(made.node)
            if isinstance(made.node, ast.Constant):
                array = editor.spell(f"jax.numpy.{end_dtype}", made.node, _NUMPY)
                editor.replace(made.node, f"{array}({source})")
            else:
                editor.replace(made.node, f"{parenthesised(syntax, made.node)}.astype({dtype})")
            yield suggested(f"Start with {end_dtype}", editor)
        yield _converted(loop, path, start_dtype)
        return
    zeros = editor.spell("jax.numpy.full", made.node, _NUMPY)
    if isinstance(made.node, ast.Constant | ast.UnaryOp) and zeros is not None:
        shape = f"({end_shape}{',' if end_shape and ',' not in end_shape else ''})"
        editor.replace(made.node, f"{zeros}({shape}, {syntax.source(made.node)}, {dtype})")
        yield suggested(f"Start with an array of the shape {shape}", editor)
    elif isinstance(made.node, ast.Call):
        name = (syntax.dotted(made.node.func) or "").rpartition(".")[2]
        size = syntax.argument(made.node, 0, "shape") if name in ("zeros", "ones", "full", "empty") else None
        if size is not None:
            shape = f"({end_shape}{',' if ',' not in end_shape else ''})" if end_shape else "()"
            editor.replace(size, shape)
            if start_dtype != end_dtype:
                _set_dtype(editor, made, dtype)
            yield suggested(f"Start with the shape {shape}", editor)


def _parts(text: str) -> tuple[str, str]:
    dtype, _, shape = text.partition("[")
    return dtype, ", ".join(part.strip() for part in shape.removesuffix("]").split(",") if part.strip())


def _set_dtype(editor: Editor, made: Spot, dtype: str) -> bool:
    """Give the call that makes the start value another dtype."""
    node = made.node
    if not isinstance(node, ast.Call):
        return False
    syntax = made.syntax
    name = (syntax.dotted(node.func) or "").rpartition(".")[2]
    if name not in _CREATORS:
        return False
    given = syntax.argument(node, _CREATORS[name], "dtype")
    if given is not None:
        editor.replace(given, dtype)
    elif name.endswith("_like"):
        editor.insert_argument(node, f"dtype={dtype}")
    else:
        editor.insert_argument(
            node, dtype if len(node.args) == _CREATORS[name] and not node.keywords else f"dtype={dtype}"
        )
    return True


def _converted(loop: Loop, path: tuple[int | str, ...], dtype: str) -> Fix | None:
    """Convert what the body returns to the type of the start value."""
    returned = result(loop.line.syntax, loop.body) if loop.body is not None else None
    for step in path:
        if not isinstance(returned, ast.Tuple | ast.List) or not isinstance(step, int) or step >= len(returned.elts):
            return None
        returned = returned.elts[step]
    if returned is None or (loop.name == "jax.lax.scan" and not path):
        return None
    editor = Editor(loop.line.path, loop.line.syntax)
    spelled = editor.spell(f"jax.numpy.{dtype}", returned, _NUMPY)
    if spelled is None:
        return None
    editor.replace(returned, f"{parenthesised(loop.line.syntax, returned)}.astype({spelled})")
    return suggested(f"Convert what the body returns to {dtype}", editor)


# -- structures ------------------------------------------------------------------------------------------------------


def _structure(loop: Loop | None, called: str, match: re.Match[str] | None) -> tuple[str, list[Fix | None]]:
    start, end = (_kind(match["start"]), _kind(match["end"])) if match is not None else ("", "")
    message = f"`{called}` gives its body something else than the body returns"
    if start and end:
        message += f": it starts with {start}, and the body returns {end}"
    message += ". Both must have the same structure."
    if loop is None or loop.body is None or loop.start is None:
        return message, []
    fixes: list[Fix | None] = []
    function = loop.body
    if end == "nothing" and isinstance(function, ast.FunctionDef):
        carried = _carry(function)
        if carried is not None:
            if loop.line.syntax.uses(carried):
                editor = Editor(loop.line.path, loop.line.syntax)
                editor.add_after(function.body[-1], f"return {carried.arg}")
                fixes.append(suggested(f"Return `{carried.arg}` from the body", editor))
            else:
                editor = Editor(loop.line.path, loop.line.syntax)
                editor.replace(loop.start, "None")
                fixes.append(suggested("Start with `None`: the body hands nothing on", editor))
    if start == "nothing" and isinstance(function, ast.FunctionDef) and isinstance(function.body[-1], ast.Return):
        editor = Editor(loop.line.path, loop.line.syntax)
        editor.replace(function.body[-1], "return None")
        fixes.append(suggested("Return nothing from the body", editor))
    return message, fixes


def _kind(text: str) -> str:
    text = text.replace("pytree leaf", "a value").strip()
    match = re.match(r"<class '(?:[\w.]*\.)?(\w+)'>(.*)", text)
    name = match[1] if match else text
    names = {
        "NoneType": "nothing",
        "ShapedArray": "one array",
        "JitTracer": "one array",
        "DynamicJaxprTracer": "one array",
    }
    return names.get(name, f"a {name}" if not name.startswith("a ") else name)


def _carry(function: ast.FunctionDef) -> ast.arg | None:
    parameters = [*function.args.posonlyargs, *function.args.args]
    return parameters[-1] if parameters else None
