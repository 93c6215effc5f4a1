"""
## What it does
Finds arrays that a kernel or an index map uses without having been given them: of the module, of the function around
it, bound by `functools.partial`, or traced by an enclosing `jax.jit`.

## Why it is wrong
A kernel runs on its own: it has its refs, numbers that Python knows while it traces, and what it computes of them. An
array from outside would have to be passed as an input. Index maps have the grid's indices and scalar-prefetch refs
only.

## Example
```python
WINDOW = jnp.hanning(128)

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * WINDOW
```

## Use instead
```python
def kernel(x_ref, window_ref, o_ref):
    o_ref[...] = x_ref[...] * window_ref[...]

pl.pallas_call(kernel, in_specs=[..., pl.BlockSpec((128,), lambda i: (0,))], ...)(x, WINDOW)
```

A number is better taken as a Python number: `float(SCALE)`, or a static argument of the enclosing `jax.jit`.

## Fix safety
Passing the array as an input, computing it in the kernel, and taking the Python number of a scalar are suggestions.

## Applies to
All backends; jax 0.10, 0.11 and 0.12. `plgpu.kernel` and `pl.kernel` allow scalars from outside.

## Source
`_trace_kernel_to_jaxpr` in `jax/_src/pallas/pallas_call.py`, "captures constants"; `_error_if_non_ref_consts` in
`jax/_src/pallas/mpmd.py`; `to_block_mapping` in `jax/_src/pallas/core.py`, "must not capture constants".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.capture_fixes import fixes
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.functions import positional
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot, expression_at, follow, frame_from
from pallas_lsp.rules.shared.specs import spec_of
from pallas_lsp.rules.shared.user_line import line_of
from pallas_lsp.rules.shared.wording import type_text
from pallas_lsp.source.syntax import PARTIAL, Function, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("captured values",)
SPECIFICITY = 62

_SCALAR = re.compile(r"memref<(\w+)>(?: != \w+|\), \w+\()")
_DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i1": "bool"}
_LOWERING = "jax/_src/pallas/mosaic_gpu/lowering.py"
SITES = (
    ("jax/_src/pallas/pallas_call.py", "_trace_kernel_to_jaxpr"),
    ("jax/_src/pallas/mpmd.py", "_error_if_non_ref_consts"),
    ("jax/_src/pallas/core.py", "BlockSpec.to_block_mapping"),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    if raised_in(fault, _LOWERING, "write_env", "_ensure_ir_value") and _SCALAR.search(fault.message):
        return _scalar(fault, context)
    captured = fault.facts.get("captured")
    if not isinstance(captured, list) or not captured or "captur" not in fault.message:
        return None
    in_index_map = raised_in(fault, "jax/_src/pallas/core.py", "to_block_mapping")
    entries = [e for e in captured if isinstance(e, Mapping)]
    if fault.capture is None:
        return None
    mpmd = raised_in(fault, "jax/_src/pallas/mpmd.py", "_error_if_non_ref_consts")
    if mpmd and line_of(fault, context) is not None:
        return None  # a function inside a kernel, mapped over warps, is another matter
    if mpmd:
        entries = [e for e in entries if e.get("shape") != []]
    if not entries:
        return None
    places = [_use(context, _by_parameter(fault, context, entry)) for entry in entries]
    first = next((i for i, spot in enumerate(places) if spot is not None), 0)
    entry, spot = entries[first], places[first]
    launch = launch_of(fault, context)
    if spot is None and launch is not None and entry.get("scope") == "partial":
        spot = _given_by_partial(launch, str(entry.get("name")))
    location = spot.location if spot is not None else None
    if location is None:
        spec = spec_of(fault, context) if in_index_map else None
        location = spec.place() if spec is not None else launch.name if launch is not None else context.locate(fault)
    message = _message(entry, spot, in_index_map)
    related = list(_related(spot))
    related += [
        Related(other.location, f"`{short(other.source, 30)}` ({type_text(e)}) comes from outside, too.")
        for e, other in zip(entries, places, strict=True)
        if other is not None and other is not spot and other.location != location
    ]
    found = list(fixes(launch, entry, spot)) if launch is not None and not in_index_map and spot is not None else []
    return finding(__name__, fault, context, location, message, related, found)


def _by_parameter(fault: Fault, context: Context, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """A value that ``functools.partial`` gives by position, under its parameter's name."""
    launch = launch_of(fault, context)
    found = launch.body() if launch is not None else None
    position = str(entry.get("name") or "")
    if found is None or entry.get("scope") != "partial" or not position.isdigit():
        return entry
    names = [each.arg for each in positional(found[2])]
    if isinstance(found[1].parent(found[2]), ast.ClassDef) and names[:1] == ["self"]:
        names = names[1:]
    return {**entry, "name": names[int(position)]} if int(position) < len(names) else entry


def _given_by_partial(launch: Launch, name: str) -> Spot | None:
    """The argument of ``functools.partial`` that gives a value, by position or by name."""
    given = launch.argument("kernel", "body")
    body = follow(launch.context, launch.frames, given, ())[0] if given is not None else None
    call = body.syntax.value(body.node) if body is not None else None
    if body is None or not isinstance(call, ast.Call) or body.syntax.dotted(call.func) not in PARTIAL:
        return None
    if name.isdigit():
        return body.at(call.args[int(name) + 1]) if int(name) + 1 < len(call.args) else None
    found = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return body.at(found) if found is not None else None


def _scalar(fault: Fault, context: Context) -> Finding | None:
    """A traced scalar in the body of a Mosaic GPU kernel: jax takes it while tracing and fails while lowering."""
    launch = launch_of(fault, context)
    found = launch.body() if launch is not None else None
    if launch is None or found is None:
        return None
    path, syntax, function = found
    outer = {s for s in (syntax.scopes.get(f) for f in _functions_around(syntax, function)) if s is not None}
    names = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and (held := syntax.scope(node).lookup(node.id)) is not None and held[0] in outer
    ]
    if not names:
        return None
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    match = _SCALAR.search(fault.message)
    dtype = _DTYPES.get(match[1] if match is not None else "", "?")
    entry = {"kind": "traced", "shape": [], "dtype": dtype, "name": names[0].id, "scope": "closure"}
    spot = Spot(path, syntax, names[0])
    message = _message(entry, spot, False)
    return finding(__name__, fault, context, spot.location, message, _related(spot), fixes(launch, entry, spot))


def _functions_around(syntax: Syntax, function: Function) -> Iterator[Function]:
    parent = syntax.function(function)
    while parent is not None:
        yield parent
        parent = syntax.function(parent)


def _message(entry: Mapping[str, Any], spot: Spot | None, in_index_map: bool) -> str:
    name = f"`{short(spot.source, 40)}`" if spot is not None else "A value"
    if entry.get("kind") == "traced":
        what = f"a traced value, {type_text(entry)}, of the function around it"
    elif entry.get("name"):
        what = f"an array, {type_text(entry)}, from outside"
    else:
        what = f"an array, {type_text(entry)}, that Python makes while it traces"
    if in_index_map:
        only = "an index map may use only its arguments: the grid's indices and scalar-prefetch refs"
        return f"{name} is {what}, but {only}."
    end = "pass it as an input and read its ref"
    if not entry.get("shape") and entry.get("kind") == "array":
        end = "use a Python number, or pass it as an input"
    return f"{name} is {what}: a kernel sees only what it is given. To use it, {end}."


def _use(context: Context, entry: Mapping[str, Any]) -> Spot | None:
    """The place in the body where the array is used: its name where that can be found, else the expression."""
    for frames in entry.get("uses") or ():
        for fact in reversed(frames):
            frame = frame_from(fact)
            if frame.origin != "workspace":
                continue
            spot = expression_at(context, frame)
            if spot is None:
                continue
            named = _named(spot, entry)
            if named is not None:
                return spot.at(named)
            if fact is frames[-1]:
                return spot.at(_made(spot) or spot.node)
    return None


def _named(spot: Spot, entry: Mapping[str, Any]) -> ast.expr | None:
    name = str(entry.get("name") or "")
    if not name or name.isdigit():
        return None
    for node in ast.walk(spot.node):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node, ast.expr):
            continue
        text = spot.syntax.source(node)
        if text == name or (entry.get("scope") == "attribute" and text.endswith(f".{name.rpartition('.')[2]}")):
            parent = spot.syntax.parent(node)
            if entry.get("inside") and isinstance(parent, ast.Subscript) and parent.value is node:
                return parent
            return node
    return None


def _made(spot: Spot) -> ast.expr | None:
    """The call that makes an array in the middle of an expression: ``jnp.array([...])``, ``np.linspace(...)``."""
    for node in ast.walk(spot.node):
        if isinstance(node, ast.Call):
            name = spot.syntax.dotted(node.func) or ""
            if name.startswith("numpy.") or name in ("jax.numpy.array", "jax.numpy.asarray"):
                return node
    return None


def _related(spot: Spot | None) -> Iterator[Related]:
    node = spot.node if spot is not None else None
    if isinstance(node, ast.Subscript):
        node = node.value
    if spot is None or not isinstance(node, ast.Name):
        return
    binding = spot.syntax.binding(node)
    if binding is not None and isinstance(binding.node, ast.Name | ast.arg):
        yield Related(Location(spot.path, spot.syntax.range(binding.node)), "It is bound here.")
