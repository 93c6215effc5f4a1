"""
## What it does
Finds computations that `pallas.fuser` cannot take into a kernel: operations before or after a fusible function for
which it knows no block by block form, blocks that such an operation cannot be cut along, misuses of `fuse`, `fusible`
and `custom_fusion`.

## Why it is wrong
The fuser evaluates what surrounds a fusible function inside of its kernel, one block at a time. For each operation it
has to know which block of its inputs a block of its output needs (pulling), or the reverse (pushing). Many operations
have such a rule for some shapes of blocks only: a reshape that keeps the last two dimensions whole, a product of two
matrices over one dimension, a sum over dimensions that are not cut.

## Example
```python
@fuser.fuse
def f(x, y):
    return matmul(x, y.reshape(128, 2, 256)[:, 0])
```

## Use instead
```python
@fuser.fuse
def f(x, y):
    return matmul(x, y)

f(x, y.reshape(128, 2, 256)[:, 0])
```

## Fix safety
This rule offers no fix: where the operation goes instead changes what is computed in the kernel.

## Applies to
TPU; jax 0.10, 0.11 and 0.12.

## Source
Any `raise` in `jax/_src/pallas/fuser`.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import clean
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.site_table import narrowed

SINCE = "0.1.0"
CONSTRUCTS = ("fuser",)
SPECIFICITY = 25
SITES = (("jax/_src/pallas/fuser/*", "*"),)
_FOLDER = "jax/_src/pallas/fuser/"
_OPERATION = re.compile(r"^_(?P<name>\w+?)_(?P<way>pull_block_spec|pull|push|eval|usage)?_?rule$")
_UNKNOWN = re.compile(r"\((?P<name>\w+), \(Block")
_PULL = "The fuser does not know which block of the input of {} a block of its output needs"
_WAYS = {
    "push": "The fuser does not know which block of the output of {} a block of its input makes",
    "eval": "The fuser cannot compute {} block by block",
}
_TOLD = (
    (
        r"contains a DAG",
        "A value is used in several ways before the fusible function, and each would need blocks of its "
        "own: compute it before, outside of `fuse`.",
    ),
    (r"Grid must be provided", "This fusion depends on prefetched numbers, so it needs the grid: give `grid=`."),
    (r"prefetches (?P<a>\S+) scalars", "This fusion was given another number of prefetched numbers than it uses."),
    (r"non-scalar values", "An index of a block is computed from an array, but only single numbers can be prefetched."),
    (
        r"missing a pull_block_spec rule",
        "This `custom_fusion` does not say which blocks it needs: define `@f.def_pull_block_spec`.",
    ),
    (
        r"missing a push_block_spec rule",
        "This `custom_fusion` does not say which blocks it makes: define `@f.def_push_block_spec`.",
    ),
    (
        r"missing an evaluation rule",
        "This `custom_fusion` does not say how a block is computed: define `@f.def_eval_rule`.",
    ),
    (r"mismatched out", "This `custom_fusion` and its implementation for kernels return different types."),
    (r"has effects|with effects", "A `custom_fusion` may only compute: it cannot store, print or read refs."),
    (r"could not be resolved", "This `custom_fusion` is called with arguments that it does not take."),
    (
        r"[Ff]usible does not support non-trivial batching",
        "`jax.vmap` cannot map a fusible function: make the batch an axis of its grid.",
    ),
    (r"cannot take Refs", "A fused function takes arrays: read the ref first."),
    (r"No fusible eqn found", "There is nothing to fuse: a fused function calls a function that `fuser.fusible` made."),
    (
        r"must depend on an output",
        "A fused function stores something into a ref that does not come from the fusible function: store it outside.",
    ),
    (r"fusions that write to Refs", "A fused function that stores into refs has a single output."),
    (
        r"Outputs must be disjoint",
        "What follows the fusible function uses several of its outputs together, so that it "
        "cannot be fused to each apart: let it return one output.",
    ),
    (r"non-fusion dtype", "Only the fuser's own element types are packed and unpacked."),
    (
        r"No implementation found|Multiple fusion types",
        "An operation on one of the fuser's own element types is not defined for it.",
    ),
    (r"PyTree", "The arguments of this fusion are not in the tree that it was made for."),
    (r"block specs, got|No block spec found", "As many block specs as the fusion has inputs are needed."),
    (r"Transpose not allowed", "A transposition cannot be evaluated in the kernel here: transpose the array before."),
    (r"[Pp]rogram ids not available", "The place in the grid is only known in kernels that have a grid."),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None or not site.file.startswith(_FOLDER):
        return None
    text = next((told for pattern, told in _TOLD if re.search(pattern, fault.message)), None) or _operation(fault)
    return finding(__name__, fault, context, narrowed(context.locate(fault), context), text)


def _operation(fault: Fault) -> str:
    """What is said of an operation that has no rule, or none for these blocks."""
    assert fault.site is not None
    parts = [part for part in fault.site.function.split(".") if part != "<locals>"]
    match = next((m for m in map(_OPERATION.match, parts) if m is not None), None)
    unknown = _UNKNOWN.match(fault.message)
    name = match["name"] if match is not None else unknown["name"] if unknown is not None else ""
    way = _WAYS.get((match["way"] or "") if match is not None else "", _PULL)
    what = f"`{name}`" if name else "this operation"
    said = "" if unknown is not None else clean(fault.message).rstrip(".").removesuffix(" yet")
    why = f": {said}" if re.search(r"\w{3}", said) else ""
    return (
        f"{way.format(what)}{why}. Do this before or after the fused function, or choose blocks that hold the "
        "dimensions concerned as a whole."
    )
