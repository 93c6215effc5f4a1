"""
## What it does
Reports every error that jax raises while a kernel is built, traced or lowered and that no more specific rule knows.

## Why it is wrong
The kernel cannot be compiled as it stands: jax itself refuses it. The message is jax's own, without its internal
representations; where jax raises an error without a message, the finding says which call was refused and by what, and
for an assertion which condition does not hold, with the values in it.

## Example
```python
def kernel(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...])  # Mosaic GPU has no lowering for cumsum
```

## Use instead
What the message asks for. Often a construct has to be written with operations that the backend knows.

## Fix safety
This rule offers no fix.

## Applies to
All backends and all supported versions of jax.

## Source
Any `raise` or `assert` in `jax/_src/pallas`, `jax/_src/state` and `jax/experimental/mosaic`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from pallas_lsp.model import Fault, Finding, Location, Range
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean, short
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("everything else",)
SPECIFICITY = 0

_REFUSALS = {
    "NotImplementedError": "asks for something that jax does not implement",
    "AssertionError": "breaks a condition that jax asserts",
    "TypeError": "was given something of the wrong type",
    "KeyError": "names something that jax does not know here",
    "IndexError": "uses an index that does not exist",
}


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.silent:
        return None  # nothing that jax said; only the rule of its check knows what it means
    place = context.locate(fault)
    marked = _marked(place, context)
    return Finding(
        rule=rule_name(__name__),
        location=marked,
        message=_message(fault, place, marked, context),
        stage=fault.stage,
        related=context.related(fault, place),
        kernel=context.kernel(fault),
        arguments=context.arguments(fault),
    )


def _message(fault: Fault, place: Location, marked: Location, context: Context) -> str:
    # jax's pointer to a place repeats the exception itself.
    links = [link for link in fault.chain if not link.exception.endswith("JaxStackTraceBeforeTransformation")]
    for text in (fault.message, *(link.message for link in links)):
        message = clean(text)
        if not re.search(r"\w{3}", message):
            continue
        # Python's KeyError holds the key alone.
        key = fault.exception.rpartition(".")[2] == "KeyError" and text is fault.message
        return f"There is no key {message.rstrip('.')} here." if key and " " not in message else message
    return _without_message(fault, place, marked, context)


def _without_message(fault: Fault, place: Location, marked: Location, context: Context) -> str:
    """A sentence for an error that jax raised without one."""
    exception = fault.exception.rpartition(".")[2]
    refusal = _REFUSALS.get(exception, "is refused by jax")
    expression = short(context.source(marked)) + ("(...)" if marked != place else "")
    quoted = f"`{expression}`" if expression else "This expression"
    if fault.equation is not None and fault.equation.primitive not in expression:
        quoted += f" (`{fault.equation.primitive}`)"
    condition = _condition(fault)
    if condition:
        return f"{quoted} {refusal}: {condition}."
    where = f" in `{_function(fault.site.function)}` ({fault.site.file})" if fault.site is not None else ""
    return f"{quoted} {refusal}: jax raises {exception} without a message{where}."


def _condition(fault: Fault) -> str:
    """The condition that jax asserted, with the values that the worker knows of."""
    asserted = fault.facts.get("asserted")
    if not isinstance(asserted, Mapping) or not asserted.get("condition"):
        return ""
    values = [f"{name} is {value}" for name, value in (asserted.get("values") or {}).items()]
    return f"`{asserted['condition']}`" + (f", but {' and '.join(values)}" if values else "")


def _function(qualified: str) -> str:
    return qualified.replace(".<locals>", "")


def _marked(place: Location, context: Context) -> Location:
    """The place, narrowed to the name of what is called where the whole call would cover many lines."""
    if place.range.start.line == place.range.end.line:
        return place
    syntax = context.syntax(place.path)
    node = syntax.node_at(place.range) if syntax is not None else None
    if syntax is None or node is None:
        return Location(place.path, Range(place.range.start, place.range.start))
    return Location(place.path, _name_range(node, syntax) or place.range)


def _name_range(node: ast.AST, syntax: Syntax) -> Range | None:
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        whole = syntax.range(node)
        if whole.start.line == whole.end.line:
            return whole
        end = syntax.lines.offset(whole.end)
        return syntax.lines.range(end - len(node.attr), end)
    if isinstance(node, ast.Name):
        return syntax.range(node)
    return None
