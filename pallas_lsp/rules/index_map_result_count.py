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

from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.functions import head_location, result
from pallas_lsp.rules.shared.index_maps import result_fixes
from pallas_lsp.rules.shared.specs import Spec, spec_of
from pallas_lsp.rules.shared.wording import count_text, shape_text

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
        __name__,
        fault,
        context,
        location,
        message,
        _related(spec),
        result_fixes(found, returned, len(results), len(block)),
    )


def _related(spec: Spec) -> Iterator[Related]:
    block = spec.argument("block_shape")
    if block is not None:
        yield Related(block.location, f"The block's shape is {shape_text(spec.block_shape)}.")
