"""
## What it does
Finds index maps that return something else than integers: floats, `None`, arrays, slices.

## Why it is wrong
The results of an index map are block indices. jax takes 32-bit and 64-bit integer scalars only; a true division makes
a float even where it comes out even.

## Example
```python
pl.BlockSpec((128, 256), lambda i: (i / 2, 0))
```

## Use instead
```python
pl.BlockSpec((128, 256), lambda i: (i // 2, 0))
```

## Fix safety
The fixes are suggestions: `//` rounds down where `/` did not, and `0` stands for the first block.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`BlockSpec.to_block_mapping` in `jax/_src/pallas/core.py`, "must return integer scalars" and, for results without a
shape, an AttributeError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.arithmetic import integer_edits
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import head_location, result
from pallas_lsp.rules.shared.specs import spec_of
from pallas_lsp.rules.shared.wording import ordinal, type_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)
SITES = (("jax/_src/pallas/core.py", "BlockSpec.to_block_mapping"),)

_INTEGERS = ("int32", "int64")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/core.py", "to_block_mapping"):
        return None
    spec = spec_of(fault, context)
    results = spec.facts.get("results") if spec is not None else None
    if spec is None or not isinstance(results, list):
        return None
    index = next((i for i, entry in enumerate(results) if not _is_index(entry)), None)
    dimensions = len(spec.block_shape if spec.block_shape is not None else spec.array_shape)
    if index is None or len(results) != dimensions:
        return None
    found = spec.index_map()
    location, node, syntax = spec.place(), None, None
    if found is not None:
        path, syntax, function = found
        returned = result(syntax, function)
        location = head_location(*found)
        if returned is not None:
            elements = returned.elts if isinstance(returned, ast.Tuple | ast.List) else [returned]
            exact = len(elements) == len(results) and not any(isinstance(e, ast.Starred) for e in elements)
            node = elements[index] if exact else returned
            location = Location(path, syntax.range(node))
    what = f"`{short(context.source(location))}`" if node is not None else f"The {ordinal(index)} result"
    message = (
        f"{what} is {_described(results[index])}, but an index map returns block indices: "
        "32-bit or 64-bit integer scalars."
    )
    related = []
    if spec.spot is not None and location.path == spec.spot.path and not _within(location, spec.spot.location):
        related.append(Related(spec.spot.location, f"The index map belongs to this BlockSpec, of {spec.what}."))
    fixes = list(_fixes(location.path, syntax, node, results[index])) if syntax and node else []
    return finding(__name__, fault, context, location, message, related, fixes)


def _is_index(entry: Mapping[str, Any]) -> bool:
    return entry.get("shape") == [] and entry.get("dtype") in _INTEGERS


def _within(inner: Location, outer: Location) -> bool:
    return outer.range.start <= inner.range.start and inner.range.end <= outer.range.end


def _described(entry: Mapping[str, Any]) -> str:
    if entry.get("shape"):
        return f"an array, {type_text(entry)}"
    if entry.get("dtype"):
        return f"a {entry['dtype']}"
    return "None" if entry.get("kind") == "NoneType" else f"a {entry.get('kind')}"


def _fixes(path: str, syntax: Syntax, node: ast.expr, entry: Mapping[str, Any]) -> Iterator[Fix | None]:
    if entry.get("kind") == "NoneType" and isinstance(node, ast.Constant):
        editor = Editor(path, syntax)
        editor.replace(node, "0")
        yield suggested("Return block 0", editor)
        return
    if entry.get("shape") != [] or not entry.get("dtype"):
        return
    for title, edits in integer_edits(syntax, node):
        editor = Editor(path, syntax)
        for target, text in edits:
            editor.replace(target, text)
        yield suggested(title, editor)
    if not isinstance(node, ast.Constant):
        editor = Editor(path, syntax)
        dtype = editor.spell("jax.numpy.int32", node, ("jax.numpy", "jnp"))
        if dtype is not None:
            source = syntax.source(node)
            editor.replace(node, f"{source if _atomic(node) else f'({source})'}.astype({dtype})")
            yield suggested("Convert the result to an integer", editor)


def _atomic(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
