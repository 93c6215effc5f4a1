"""
## What it does
Finds BlockSpecs whose block has another number of dimensions than the array that it cuts.

## Why it is wrong
A block has one entry for each dimension of its array. For a dimension that the kernel should not see, the entry is
`None`: the block is one element wide there and the ref has no such dimension.

## Example
```python
# x has the shape (4, 128, 256)
pl.BlockSpec((128, 256), lambda b: (b, 0))
```

## Use instead
```python
pl.BlockSpec((None, 128, 256), lambda b: (b, 0, 0))   # the ref is (128, 256)
pl.BlockSpec((1, 128, 256), lambda b: (b, 0, 0))      # the ref is (1, 128, 256)
```

## Fix safety
The fixes are suggestions: which dimension of the array the block leaves out is taken from the sizes of the grid and of
the array.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`BlockSpec.to_block_mapping` in `jax/_src/pallas/core.py`, "must have the same number of dimensions as the array shape".
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import positional, result
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
    if spec is None or spec.block_shape is None or len(spec.block_shape) == len(spec.array_shape):
        return None
    given = spec.argument("block_shape")
    location = given.location if given is not None else spec.place()
    message = (
        f"The block {shape_text(spec.block_shape)} has {count_text(len(spec.block_shape), 'dimension')}, but the array "
        f"that it cuts, {spec.what}, has {len(spec.array_shape)}: {shape_text(spec.array_shape)}."
    )
    related: list[Related] = list(spec.related_array())
    return finding(__name__, fault, context, location, message, related, _fixes(spec))


def _fixes(spec: Spec) -> Iterator[Fix | None]:
    given, found = spec.argument("block_shape"), spec.index_map()
    block, array = spec.block_shape, spec.array_shape
    if given is None or block is None or not isinstance(given.node, ast.Tuple | ast.List):
        return
    if len(given.node.elts) != len(block):
        return
    entries = [given.syntax.source(e) for e in given.node.elts]
    missing = len(array) - len(block)
    if missing > 0:
        indices = _indices(spec, found, missing)
        for entry, seen in (("None", "which the kernel does not see"), ("1", "one element wide")):
            edits = Editor(given.path, given.syntax)
            edits.replace(given.node, _tuple([*[entry] * missing, *entries]))
            editors = _with_indices(spec, found, edits, indices)
            if editors is not None:
                plural = "dimension" if missing == 1 else f"{missing} dimensions"
                yield suggested(f"Give the block a leading {plural}, {seen}", *editors)
        whole = [str(d) for d in array[-missing:]]
        edits = Editor(given.path, given.syntax)
        edits.replace(given.node, _tuple([*entries, *whole]))
        returned = result(found[1], found[2]) if found is not None else None
        elements = returned.elts if isinstance(returned, ast.Tuple) else [returned] if returned is not None else []
        trailing = [found[1].source(e) for e in elements] if found is not None else []
        if len(trailing) == len(block):
            trailing += ["0"] * missing
        editors = _with_indices(spec, found, edits, trailing or None)
        if editors is not None:
            yield suggested(f"Let the block cover the rest of the array: `{_tuple([*entries, *whole])}`", *editors)
        return
    drop = [i for i, size in enumerate(block) if size in (1, None)][:-missing]
    if len(drop) < -missing:
        return
    edits = Editor(given.path, given.syntax)
    edits.replace(given.node, _tuple([e for i, e in enumerate(entries) if i not in drop]))
    returned = result(found[1], found[2]) if found is not None else None
    if isinstance(returned, ast.Tuple) and len(returned.elts) == len(block) and found is not None:
        kept = [found[1].source(e) for i, e in enumerate(returned.elts) if i not in drop]
        editors = _with_indices(spec, found, edits, kept)
    else:
        editors = _with_indices(spec, found, edits, None)
    if editors is not None:
        yield suggested("Leave out the dimensions of size 1 that the array lacks", *editors)


def _tuple(entries: Sequence[str]) -> str:
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


def _indices(spec: Spec, found: tuple[str, Syntax, Function] | None, missing: int) -> list[str] | None:
    """The results of the index map for the array's rank: new leading ones, then those it had."""
    returned = result(found[1], found[2]) if found is not None else None
    block, array = spec.block_shape, spec.array_shape
    if found is None or returned is None or block is None:
        return None
    _, syntax, function = found
    elements = returned.elts if isinstance(returned, ast.Tuple | ast.List) else [returned]
    if len(elements) == len(array):
        return [syntax.source(e) for e in elements]
    if len(elements) != len(block):
        return None
    names = [p.arg for p in positional(function)]
    grid = spec.launch.facts.get("grid") if spec.launch is not None else None
    sizes = list(grid) if isinstance(grid, list) else []
    texts = [syntax.source(e) for e in elements]
    blocks = [
        math.ceil(length / size) if isinstance(length, int) and isinstance(size, int) and size else None
        for length, size in zip(array[missing:], block, strict=True)
    ]
    leading = []
    for length in array[:missing]:
        for axis, name in enumerate(names[: len(sizes)]):
            # The index runs over this dimension where the axis is as long and the place where it stood is one block.
            used = [i for i, text in enumerate(texts) if text == name]
            if sizes[axis] == length and name not in leading and all(blocks[i] == 1 or length == 1 for i in used):
                for i in used:
                    texts[i] = "0"
                leading.append(name)
                break
        else:
            leading.append("0")
    return [*leading, *texts]


def _with_indices(
    spec: Spec, found: tuple[str, Syntax, Function] | None, edits: Editor, indices: list[str] | None
) -> list[Editor] | None:
    """The editors of a fix, with the index map's results changed too; None where they cannot be."""
    if found is None:
        return [edits] if spec.facts.get("index_map") is None else None
    path, syntax, function = found
    returned = result(syntax, function)
    if indices is None:
        return [edits] if not isinstance(returned, ast.Tuple) else None
    if returned is None:
        return None
    if path == edits.path:
        edits.replace(returned, _tuple(indices))
        return [edits]
    other = Editor(path, syntax)
    other.replace(returned, _tuple(indices))
    return [edits, other]
