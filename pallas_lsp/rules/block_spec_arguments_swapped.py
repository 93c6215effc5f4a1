"""
## What it does
Finds BlockSpecs whose first argument is the index map instead of the block's shape.

## Why it is wrong
Since jax 0.4.31 the order is `pl.BlockSpec(block_shape, index_map)`. A function in the place of the shape cannot be
read as one.

## Example
```python
pl.BlockSpec(lambda i, j: (i, j), (128, 128))
```

## Use instead
```python
pl.BlockSpec((128, 128), lambda i, j: (i, j))
```

## Fix safety
Swapping the two arguments is safe: they have types that cannot be confused. Where only a function is given, naming it
`index_map` is a suggestion: the block is then the whole array.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_canonicalize_block_shape` in `jax/_src/pallas/core.py`: Python's own TypeError, "'function' object is not iterable".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.specs import Spec, spec_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)
SITES = (("jax/_src/pallas/core.py", "_canonicalize_block_shape"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not passed_through(fault, "jax/_src/pallas/core.py", "_canonicalize_block_shape"):
        return None
    spec = spec_of(fault, context)
    if spec is None or spec.facts.get("block_shape") != "function":
        return None
    shape = spec.argument("block_shape")
    second = spec.argument("index_map")
    message = "The first argument of a BlockSpec is the block's shape, but this is a function. " + (
        "The shape comes first, then the index map."
        if second is not None
        else "An index map alone is given as `index_map=...`."
    )
    location = shape.location if shape is not None else spec.place()
    return finding(__name__, fault, context, location, message, (), _fixes(spec))


def _fixes(spec: Spec) -> Iterator[Fix | None]:
    if spec.spot is None or not isinstance(spec.spot.node, ast.Call):
        return
    syntax, call = spec.spot.syntax, spec.spot.node
    editor = Editor(spec.spot.path, syntax)
    named = {k.arg: k for k in call.keywords}
    if len(call.args) >= 2 and not any(isinstance(a, ast.Starred) for a in call.args[:2]):
        editor.replace(call.args[0], syntax.source(call.args[1]))
        editor.replace(call.args[1], syntax.source(call.args[0]))
        yield safe("Swap the arguments: the block's shape first, then the index map", editor)
    elif "block_shape" in named and "index_map" in named:
        editor.replace(named["block_shape"].value, syntax.source(named["index_map"].value))
        editor.replace(named["index_map"].value, syntax.source(named["block_shape"].value))
        yield safe("Swap the values of `block_shape` and `index_map`", editor)
    elif len(call.args) == 1 and "index_map" not in named and "block_shape" not in named:
        editor.insert(syntax.span(call.args[0])[0], "index_map=")
        yield suggested("Name the function `index_map`; the block is then the whole array", editor)
