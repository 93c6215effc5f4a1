"""
## What it does
Finds BlockSpecs whose `block_shape` is a number, an array's type or another thing that is no sequence of dimensions.

## Why it is wrong
`block_shape` has one entry for each dimension of the array, for a vector too: `(128,)`. A comma makes the tuple, not
the parentheses: `(128)` is the number 128.

## Example
```python
pl.BlockSpec((128), lambda i: (i,))
```

## Use instead
```python
pl.BlockSpec((128,), lambda i: (i,))
```

## Fix safety
Making a tuple of a number is safe; `.shape` of an array's type is a suggestion.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_canonicalize_block_shape` and `_get_block_dim_size` in `jax/_src/pallas/core.py`: Python's own TypeError, or
"Unsupported block shape type".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.arithmetic import integer_edits
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.jit_static import traced_argument
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.specs import spec_of
from pallas_lsp.rules.shared.wording import shape_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)
SPECIFICITY = 45
SITES = (
    ("jax/_src/pallas/core.py", "_canonicalize_block_shape"),
    ("jax/_src/pallas/core.py", "_get_block_dim_size"),
    ("jax/_src/pallas/core.py", "get_block_size"),
    ("jax/_src/pallas/core.py", "_canonicalize_block_dim"),
)

_FILE = "jax/_src/pallas/core.py"


def judge(fault: Fault, context: Context) -> Finding | None:
    functions = ("_canonicalize_block_shape", "_canonicalize_block_dim", "_get_block_dim_size", "get_block_size")
    if not passed_through(fault, _FILE, *functions):
        return None
    spec = spec_of(fault, context)
    if spec is None or spec.facts.get("block_shape") == "function":
        return None
    given = spec.argument("block_shape")
    location = given.location if given is not None else spec.place()
    what = f"`{short(context.source(location))}`" if given is not None else "The block's shape"
    if spec.block_shape is None:
        kind = str(spec.facts.get("block_shape", "")).partition(" ")[0]
        message = (
            f"{what} is no tuple{f' but an {kind}' if kind == 'int' else ''}: a block's shape has one entry for each "
            f"dimension of the array, and {spec.what} has the shape {shape_text(spec.array_shape)}."
        )
    else:
        message = (
            f"{what} has an entry that is no dimension: each is an integer, `None` (a dimension that the kernel does "
            "not see), or one of `pl.Blocked`, `pl.Element`, `pl.Squeezed` and `pl.BoundedSlice`."
        )
    traced = traced_argument(given) if given is not None else None
    if traced is not None:
        fixes = [traced.fix()]
        return finding(__name__, fault, context, location, f"{message}\n{traced.advice}", spec.related_array(), fixes)
    return finding(__name__, fault, context, location, message, spec.related_array(), _fixes(given, spec.block_shape))


def _fixes(given: Spot | None, block: list[object] | None) -> Iterator[Fix | None]:
    if given is None:
        return
    syntax, node = given.syntax, given.node
    if block is None:
        value = syntax.value(node)
        editor = Editor(given.path, syntax)
        start, end = editor.whole(node)
        text = syntax.text[start:end]
        if isinstance(value, ast.Constant | ast.BinOp | ast.Name | ast.Subscript | ast.Attribute):
            inner = syntax.source(node)
            editor.change(start, end, f"({inner},)")
            yield safe(f"Make it a tuple: `({short(inner, 30)},)`", editor)
        elif text:
            editor.insert(end, ".shape")
            yield suggested("Take its shape", editor)
        return
    if isinstance(node, ast.Tuple | ast.List):
        for index, entry in enumerate(node.elts):
            if index < len(block) and isinstance(block[index], str):
                for title, edits in integer_edits(syntax, entry):
                    editor = Editor(given.path, syntax)
                    for target, text in edits:
                        editor.replace(target, text)
                    yield suggested(title, editor)
