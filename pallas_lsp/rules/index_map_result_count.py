"""
## What it does
Finds index maps that return another number of values than the block has dimensions.

## Why it is wrong
An index map says which block of the array a step works on: one block index for each dimension of `block_shape`,
squeezed ones (`None`) included.

## Example
```python
pl.BlockSpec((128, 256), lambda i: i)
```

## Use instead
```python
pl.BlockSpec((128, 256), lambda i: (i, 0))
```

## Fix safety
The fixes are suggestions: they use a grid index that the map did not use yet, or block 0, for a dimension without an
index, or take away the zeros that are too many.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`BlockSpec.to_block_mapping` in `jax/_src/pallas/core.py`, "must return N values to match block_shape".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import head_location, positional, result, unused
from pallas_lsp.rules.shared.specs import Spec, spec_of
from pallas_lsp.rules.shared.wording import count_text, shape_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)
SITES = (("jax/_src/pallas/core.py", "BlockSpec.to_block_mapping"),)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/core.py", "to_block_mapping"):
        return None
    spec = spec_of(fault, context)
    if spec is None or (spec.block_shape is None and not spec.array_shape):
        return None
    results = spec.facts.get("results")
    block = spec.block_shape if spec.block_shape is not None else spec.array_shape
    if not isinstance(results, list) or len(results) == len(block):
        return None
    found = spec.index_map()
    location, returned = spec.place(), None
    if found is not None:
        path, syntax, function = found
        returned = result(syntax, function)
        location = Location(path, syntax.range(returned)) if returned is not None else head_location(*found)
    none = len(results) == 1 and results[0].get("kind") == "NoneType"
    returns = "returns nothing" if none else f"returns {count_text(len(results), 'value')}"
    message = (
        f"This index map {returns}, but the block {shape_text(block)} of {spec.what} has "
        f"{count_text(len(block), 'dimension')}: it must return one block index for each."
    )
    return finding(
        __name__, fault, context, location, message, _related(spec), _fixes(found, returned, len(results), len(block))
    )


def _related(spec: Spec) -> Iterator[Related]:
    block = spec.argument("block_shape")
    if block is not None:
        yield Related(block.location, f"The block's shape is {shape_text(spec.block_shape)}.")


def _fixes(
    found: tuple[str, Syntax, Function] | None, returned: ast.expr | None, have: int, want: int
) -> Iterator[Fix | None]:
    if found is None or returned is None:
        return
    path, syntax, function = found
    elements = returned.elts if isinstance(returned, ast.Tuple | ast.List) else [returned]
    if len(elements) == 1 and isinstance(elements[0], ast.Tuple | ast.List) and len(elements[0].elts) == want:
        editor = Editor(path, syntax)
        editor.replace(returned, syntax.source(elements[0]))
        yield suggested("Return the indices themselves, not a tuple inside a tuple", editor)
        return
    if len(elements) != have or any(isinstance(e, ast.Starred) for e in elements):
        return
    texts = [syntax.source(e) for e in elements]
    if have < want:
        missing = want - have
        spare = [p.arg for p in positional(function) if unused(syntax, p)]
        if len(spare) >= missing:
            yield _returning(path, syntax, returned, [*texts, *spare[:missing]], "Return the other grid index too")
        yield _returning(path, syntax, returned, [*texts, *["0"] * missing], "Return block 0 for the missing dimension")
        yield _returning(
            path, syntax, returned, [*["0"] * missing, *texts], "Return block 0 for the missing leading dimension"
        )
        return
    zeros = [i for i, e in enumerate(elements) if isinstance(e, ast.Constant) and e.value == 0]
    if len(zeros) >= have - want:
        drop = set(zeros[-(have - want) :])
        kept = [text for i, text in enumerate(texts) if i not in drop]
        yield _returning(path, syntax, returned, kept, "Return no index for a dimension that the block lacks")


def _returning(path: str, syntax: Syntax, returned: ast.expr, texts: list[str], title: str) -> Fix | None:
    editor = Editor(path, syntax)
    text = ", ".join(texts) + ("," if len(texts) == 1 else "")
    editor.replace(returned, f"({text})")
    return suggested(title, editor)
