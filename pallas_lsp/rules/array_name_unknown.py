"""
## What it does
Finds parameters and methods of arrays that jax does not have, but PyTorch or older versions of NumPy and jax do.

## Why it is wrong
`jax.numpy` has NumPy's names: `axis` and `keepdims`, where PyTorch says `dim` and `keepdim`; the bounds of `jnp.clip`
are `min` and `max`.

## Example
```python
s = jnp.sum(x, dim=1, keepdim=True)
y = jnp.clip(x, a_min=0).to(jnp.bfloat16)
```

## Use instead
```python
s = jnp.sum(x, axis=1, keepdims=True)
y = jnp.clip(x, min=0).astype(jnp.bfloat16)
```

## Fix safety
The fixes write the same in jax's words and are safe.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
The TypeError and AttributeError that Python raises for them; the signatures of `jax.numpy`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix, Location
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.stores import parenthesised
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("primitives",)
SPECIFICITY = 30

_UNEXPECTED = re.compile(r"^_?(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_NO_ATTRIBUTE = re.compile(r"has no attribute '?(?P<name>\w+)")
_PARAMETERS: Mapping[str, str] = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "a_min": "min",
    "a_max": "max",
}
_METHODS: Mapping[str, str] = {
    "to": "astype({})",
    "type": "astype({})",
    "view": "reshape({})",
    "permute": "transpose({})",
    "float": "astype(jnp.float32)",
    "half": "astype(jnp.float16)",
    "bfloat16": "astype(jnp.bfloat16)",
    "int": "astype(jnp.int32)",
    "bool": "astype(jnp.bool_)",
    "numel": "size",
    "t": "T",
    "contiguous": "",
    "clone": "",
    "detach": "",
}


def judge(fault: Fault, context: Context) -> Finding | None:
    line = line_of(fault, context)
    if fault.capture is None or line is None:
        return None
    if fault.exception.endswith("TypeError") and (match := _UNEXPECTED.match(fault.message)):
        return _parameter(fault, context, line, match)
    if fault.exception.endswith("AttributeError") and (match := _NO_ATTRIBUTE.search(fault.message)):
        return _method(fault, context, line, match["name"])
    return None


def _parameter(fault: Fault, context: Context, line: Line, match: re.Match[str]) -> Finding | None:
    call = line.node
    if not isinstance(call, ast.Call) or not _is_jax(fault, line, call.func):
        return None
    unknown = [each for each in call.keywords if each.arg in _PARAMETERS]
    if match["name"] not in [each.arg for each in unknown]:
        return None
    keyword = unknown[0]
    wanted = _PARAMETERS[keyword.arg or ""]
    name = short(line.syntax.source(call.func), 40)
    message = f"`{name}` has no parameter `{keyword.arg}`: in jax it is `{wanted}`."
    editor = Editor(line.path, line.syntax)
    for each in call.keywords:
        new = _PARAMETERS.get(each.arg or "")
        if new and each.arg is not None:
            start = line.syntax.span(each)[0]
            editor.change(start, start + len(each.arg), new)
    location = Location(line.path, line.syntax.range(keyword))
    return finding(__name__, fault, context, location, message, (), [safe(f"Write `{wanted}`", editor)])


def _is_jax(fault: Fault, line: Line, function: ast.expr) -> bool:
    """Whether a function is one of jax, or a method of an array (jax has them under names with an underscore)."""
    if (line.syntax.dotted(function) or "").startswith("jax."):
        return True
    return isinstance(function, ast.Attribute) and fault.message.startswith("_")


def _method(fault: Fault, context: Context, line: Line, name: str) -> Finding | None:
    node = line.node.func if isinstance(line.node, ast.Call) else line.node
    if name not in _METHODS or not isinstance(node, ast.Attribute) or node.attr != name or "racer" not in fault.message:
        return None
    call = line.syntax.parent(node)
    called = call if isinstance(call, ast.Call) and call.func is node else None
    new = _METHODS[name].partition("(")[0]
    what = f"in jax it is `{new}`" if new else "in jax there is no need for it"
    location = Location(line.path, line.syntax.range(node))
    message = f"Arrays have no method `{name}`: {what}."
    return finding(__name__, fault, context, location, message, (), _method_fix(line, node, called, name))


def _method_fix(line: Line, node: ast.Attribute, call: ast.Call | None, name: str) -> Iterator[Fix | None]:
    if call is None or any(isinstance(each, ast.Starred) for each in call.args) or call.keywords:
        return
    own, new = parenthesised(line.syntax, node.value), _METHODS[name]
    given = ", ".join(line.syntax.source(each) for each in call.args)
    if ("{}" in new) != bool(given):
        return
    editor = Editor(line.path, line.syntax)
    if "jnp." in new:
        dtype = editor.spell(f"jax.numpy.{new.partition('jnp.')[2].rstrip(')')}", node, ("jax.numpy", "jnp"))
        if dtype is None:
            return
        new = f"astype({dtype})"
    text = f"{own}.{new.format(given)}" if new else own
    editor.replace(call, text)
    yield safe(f"Write `{short(text, 40)}`", editor)
