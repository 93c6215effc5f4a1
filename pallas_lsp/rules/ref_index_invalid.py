"""
## What it does
Finds indices that a ref does not take: more of them than the ref has dimensions, two ellipses, a negative step, a
list, a string, arrays that do not broadcast.

## Why it is wrong
A ref is indexed with at most one index for each dimension: integers, slices with positive steps, `pl.ds(start,
size)`, one `...`, and integer arrays of one common shape.

## Example
```python
x_ref[0, 0, 0]      # x_ref has 2 dimensions
x_ref[::-1]
```

## Use instead
```python
x_ref[0, 0]
x_ref[...][::-1]    # reverse the value, where the backend can
```

## Fix safety
The fixes are suggestions.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`NDIndexer` in `jax/_src/state/indexing.py`; `Slice` in `jax/_src/indexing.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import clean, short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import count_text, shape_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SPECIFICITY = 45
SITES = (
    ("jax/_src/state/indexing.py", "NDIndexer.from_indices_shape"),
    ("jax/_src/state/indexing.py", "NDIndexer.__post_init__"),
    ("jax/_src/indexing.py", "Slice.from_slice"),
    ("jax/_src/indexing.py", "Slice.__post_init__"),
)

_FILE = "jax/_src/state/indexing.py"


def judge(fault: Fault, context: Context) -> Finding | None:
    here = passed_through(fault, _FILE, "from_indices_shape", "__post_init__", "from_slice")
    if not here and not passed_through(fault, "jax/_src/indexing.py", "from_slice", "__post_init__"):
        return None
    if fault.stage != "trace" or fault.exception.endswith("ConversionError"):
        return None
    line = line_of(fault, context)
    subscript = line.node if line is not None and isinstance(line.node, ast.Subscript) else None
    if line is None or subscript is None:
        return None
    indices = list(subscript.slice.elts) if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
    ellipses = [i for i in indices if isinstance(i, ast.Constant) and i.value is Ellipsis]
    base = subscript.value.value if isinstance(subscript.value, ast.Attribute) else subscript.value
    fact = line.fact(base)
    shape = fact.get("shape") if fact is not None else None
    name = short(line.syntax.source(base), 30)
    location = line.at(subscript.slice)
    fixes: list[Fix | None] = []
    if len(ellipses) > 1:
        location = line.at(ellipses[1])
        message = "`...` may stand once in an index: a second one does not say which dimensions it is for."
        fixes = list(_without(line, subscript, indices, [indices.index(e) for e in ellipses[1:]], "Keep one `...`"))
    elif isinstance(shape, list) and len(indices) - len(ellipses) > len(shape):
        count = len(indices) - len(ellipses)
        message = (
            f"`{name}` has {count_text(len(shape), 'dimension')}, {shape_text(shape)}, but it is indexed with "
            f"{count_text(count, 'index').replace('indexs', 'indices')}."
        )
        extra = list(range(len(indices)))[len(shape) + len(ellipses) :]
        fixes = list(_without(line, subscript, indices, extra, "Drop the indices that are too many"))
    elif (step := next((i for i in indices if isinstance(i, ast.Slice) and i.step is not None), None)) is not None:
        location = line.at(step)
        message = (
            f"`{short(line.syntax.source(step), 30)}` has a step that a ref does not take: steps must be positive."
        )
    elif (odd := next((i for i in indices if isinstance(i, ast.List)), None)) is not None:
        location = line.at(odd)
        message = "A ref is not indexed with a list. Use a slice, `pl.ds(start, size)`, or an integer array."
    elif (
        text := next((i for i in indices if isinstance(i, ast.Constant) and isinstance(i.value, str)), None)
    ) is not None:
        location = line.at(text)
        message = f"`{name}` is indexed with a string, but a ref takes integers, slices and integer arrays."
    else:
        reason = clean(fault.message)
        message = f"`{name}` cannot be indexed like this. {reason}".strip()
    return finding(__name__, fault, context, location, message, (), fixes)


def _without(
    line: Line, subscript: ast.Subscript, indices: list[ast.expr], drop: list[int], title: str
) -> Iterator[Fix | None]:
    kept = [line.syntax.source(e) for i, e in enumerate(indices) if i not in drop]
    if kept and isinstance(subscript.slice, ast.Tuple):
        editor = Editor(line.path, line.syntax)
        editor.replace(subscript.slice, ", ".join(kept))
        yield suggested(title, editor)
