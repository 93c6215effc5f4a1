"""
## What it does
Finds entries of `input_output_aliases` whose input and output cannot share memory: another shape or dtype, an index
that does not exist, or no mapping at all.

## Why it is wrong
`input_output_aliases={i: o}` lets output `o` reuse the memory of input `i`. Both must have the same shape and dtype.
The indices count all arguments of the call, flattened, scalar-prefetch arguments included.

## Example
```python
# new is (128, 256), buf and the output are (256, 256)
pl.pallas_call(append_kernel, out_shape=like_buf, input_output_aliases={0: 0})(new, buf)
```

## Use instead
```python
pl.pallas_call(append_kernel, out_shape=like_buf, input_output_aliases={1: 0})(new, buf)
```

## Fix safety
The fixes are suggestions: another input of the right type, or no alias.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`wrapped` in `_pallas_call` in `jax/_src/pallas/pallas_call.py`, "input_output_aliases contains the mapping".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.wording import count_text, type_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("outputs and scratch",)
SITES = (("jax/_src/pallas/pallas_call.py", "_pallas_call.<locals>.wrapped"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/pallas_call.py", "wrapped"):
        return None
    launch = launch_of(fault, context)
    given = launch.facts.get("given_input_output_aliases") if launch is not None else None
    if launch is None or not isinstance(given, Mapping):
        return None
    if given.get("kind") not in ("dict", "FrozenDict", "mappingproxy"):
        if not fault.exception.endswith("AttributeError"):
            return None
        return _no_mapping(fault, context, launch, given)
    source, target = launch.facts.get("alias_i"), launch.facts.get("alias_o")
    inputs, outputs = launch.facts.get("inputs") or [], launch.facts.get("outputs") or []
    if source is None or "input_output_aliases" not in fault.message:
        return None
    spot = launch.argument("input_output_aliases")
    entry = _entry(spot, source)
    location = _range(spot, entry) if spot is not None else launch.name
    message = _message(launch, source, target, inputs, outputs)
    related = list(_related(launch, source, target, inputs, outputs))
    return finding(
        __name__, fault, context, location, message, related, _fixes(spot, entry, source, target, inputs, outputs)
    )


def _no_mapping(fault: Fault, context: Context, launch: Launch, given: Mapping[str, Any]) -> Finding:
    spot = launch.argument("input_output_aliases")
    location = spot.location if spot is not None else launch.name
    message = (
        f"`input_output_aliases` is a {given.get('kind')}, but it must be a dictionary from the index of an input "
        "to the index of the output that reuses its memory."
    )
    fixes = []
    if spot is not None and isinstance(spot.node, ast.List | ast.Tuple):
        pairs = [e for e in spot.node.elts if isinstance(e, ast.Tuple | ast.List) and len(e.elts) == 2]
        if len(pairs) == len(spot.node.elts):
            text = ", ".join(": ".join(spot.syntax.source(p) for p in pair.elts) for pair in pairs)
            editor = Editor(spot.path, spot.syntax)
            editor.replace(spot.node, f"{{{text}}}")
            fixes.append(safe(f"Make it a dictionary: `{{{text}}}`", editor))
    return finding(__name__, fault, context, location, message, (), fixes)


def _entry(spot: Spot | None, key: object) -> tuple[ast.expr, ast.expr] | None:
    """Key and value of a mapping in the dictionary literal."""
    value = spot.syntax.value(spot.node) if spot is not None else None
    if not isinstance(value, ast.Dict):
        return None
    for each, target in zip(value.keys, value.values, strict=True):
        if isinstance(each, ast.Constant) and (each.value == key or repr(each.value) == key):
            return each, target
    if len(value.keys) == 1 and value.keys[0] is not None:
        return value.keys[0], value.values[0]
    return None


def _range(spot: Spot, entry: tuple[ast.expr, ast.expr] | None) -> Location:
    if entry is None:
        return spot.location
    first, last = spot.syntax.range(entry[0]), spot.syntax.range(entry[1])
    return Location(spot.path, type(first)(first.start, last.end))


def _message(launch: Launch, source: object, target: object, inputs: list[Any], outputs: list[Any]) -> str:
    if not isinstance(source, int) or not 0 <= source < len(inputs):
        prefetch = int(launch.facts.get("scalar_prefetch") or 0)
        counted = f", the {count_text(prefetch, 'scalar-prefetch argument')} included" if prefetch else ""
        has = count_text(len(inputs), "input")
        return f"There is no input {source}: the kernel is called with {has}{counted}, counted from 0."
    if not isinstance(target, int) or not 0 <= target < len(outputs):
        return f"There is no output {target}: the kernel has {count_text(len(outputs), 'output')}, counted from 0."
    return (
        f"Output {target} is {type_text(outputs[target])} and cannot reuse the memory of input {source}"
        f"{_called(launch, source)}, which is {type_text(inputs[source])}: shape and dtype must be the same."
    )


def _called(launch: Launch, index: int) -> str:
    operands = launch.operands()
    return f" (`{short(operands[index].source, 30)}`)" if index < len(operands) else ""


def _related(
    launch: Launch, source: object, target: object, inputs: list[Any], outputs: list[Any]
) -> Iterator[Related]:
    operands = launch.operands()
    if isinstance(source, int) and 0 <= source < min(len(operands), len(inputs)):
        yield Related(operands[source].location, f"Input {source} is {type_text(inputs[source])}.")
    if isinstance(target, int) and 0 <= target < len(outputs):
        out = launch.part(f"[{target}]", launch.output) if len(outputs) > 1 else launch.argument(launch.output)
        if out is not None:
            yield Related(out.location, f"Output {target} is {type_text(outputs[target])}.")


def _fixes(
    spot: Spot | None,
    entry: tuple[ast.expr, ast.expr] | None,
    source: object,
    target: object,
    inputs: list[Any],
    outputs: list[Any],
) -> Iterator[Fix | None]:
    if spot is None or entry is None:
        return
    known_target = isinstance(target, int) and 0 <= target < len(outputs)
    known_source = isinstance(source, int) and 0 <= source < len(inputs)
    if known_target:
        assert isinstance(target, int)
        for index, each in enumerate(inputs):
            if index != source and _same(each, outputs[target]):
                editor = Editor(spot.path, spot.syntax)
                editor.replace(entry[0], str(index))
                yield suggested(f"Alias input {index}, which has the type of output {target}", editor)
    if known_source:
        assert isinstance(source, int)
        for index, each in enumerate(outputs):
            if index != target and _same(each, inputs[source]):
                editor = Editor(spot.path, spot.syntax)
                editor.replace(entry[1], str(index))
                yield suggested(f"Alias output {index}, which has the type of input {source}", editor)
    literal = spot.syntax.parent(entry[0])
    if isinstance(literal, ast.Dict) and len(literal.keys) == 1:
        call = spot.syntax.call(spot.node)
        keyword = next((k for k in call.keywords if k.value is spot.node), None) if call is not None else None
        if call is not None and keyword is not None:
            editor = Editor(spot.path, spot.syntax)
            editor.remove_argument(call, keyword)
            yield suggested("Give the output memory of its own", editor)


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.get("shape") == b.get("shape") and a.get("dtype") == b.get("dtype")
