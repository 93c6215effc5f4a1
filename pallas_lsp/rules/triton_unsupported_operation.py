"""
## What it does
Finds operations in a kernel that jax cannot lower through Triton, such as `jnp.sort`, a slice of a loaded value, or
`jnp.concatenate`.

## Why it is wrong
A Triton kernel is a program on blocks of values: there are element-wise operations, reductions, `jnp.cumsum`, matrix
products, broadcasts, reshapes, and loads and stores through refs. A value that was loaded has no address any more, so
parts of it cannot be taken, moved or put together; that has to be done by the loads and stores.

## Example
```python
def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x[:, :32]  # a slice of a value
```

## Use instead
```python
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[:, :32]  # a load of that part
```

The message says what to use for the operation at hand: index the ref, store the parts one by one, loop with
`jax.lax.fori_loop`, or compute it outside of the kernel.

## Fix safety
Reading a part from the ref is safe where the kernel does not store to that ref, and suggested otherwise. Storing the
parts of a concatenation one by one is safe.

## Applies to
Kernels for NVIDIA GPUs that are lowered through Triton; jax 0.10, 0.11 and 0.12.

## Source
`lower_jaxpr_to_triton_ir` and the lowering rules of `concatenate`, `stack`, `unstack`, `split`, `cumsum` and
`bitcast_convert_type` in `jax/_src/pallas/triton/lowering.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Backend, Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import replacements, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("Triton", "primitives")

_FILE = "jax/_src/pallas/triton/lowering.py"


def _unimplemented(details: Details) -> str:
    return replacements.needs(details, Backend.TRITON, "a Triton kernel")


def _concatenate(details: Details) -> str:
    types = ", ".join(details.equation.inputs[:4]) if details.equation is not None else ""
    return (
        f"`{details.source}` puts together {types}: in a Triton kernel only two values whose last dimension is 1 can "
        "be concatenated. Store each part into its own slice of the output ref instead."
    )


_FIX = replacements.fixes
_ROWS = (
    Row(
        _FILE,
        ("lower_jaxpr_to_triton_ir",),
        _unimplemented,
        r"primitive in Pallas Triton lowering: (?P<name>[\w-]+)",
        fixes=_FIX,
    ),
    Row(_FILE, ("_concatenate_lowering_rule",), _concatenate, fixes=_FIX),
    Row(
        _FILE,
        ("_stack_lowering_rule",),
        "`{source}` cannot be made in a Triton kernel: it can stack only two values, along a new last axis. "
        "Store each value into its own part of the output ref instead.",
        fixes=_FIX,
    ),
    Row(
        _FILE,
        ("_unstack_lowering_rule",),
        "`{source}` takes {a} apart along axis {axis}: a Triton kernel can do so only along a last axis of size 2. "
        "Load each part from the ref instead.",
        fixes=_FIX,
    ),
    Row(
        _FILE,
        ("_split_lowering_rule",),
        "`{source}` splits {a} into parts that differ in size: a Triton kernel can only split a value into 2, 4, 8, "
        "... equal parts. Load each part from the ref instead.",
        "equal-sized",
        fixes=_FIX,
    ),
    Row(
        _FILE,
        ("_split_lowering_rule",),
        "`{source}` splits {a} into a number of parts that is no power of two: a Triton kernel can only split a value "
        "into 2, 4, 8, ... equal parts. Load each part from the ref instead.",
        fixes=_FIX,
    ),
    Row(
        _FILE,
        ("_cumsum_lowering_rule",),
        "`{source}` sums from the end: a Triton kernel has only the forward cumulative sum. "
        "Subtract that from the total instead.",
        at=((3, "reverse"),),
        fixes=_FIX,
    ),
    Row(
        _FILE,
        ("_associative_scan_lowering",),
        "The function of `{source}` uses arrays from outside: a scan in a Triton kernel can only combine its own "
        "values. Pass them as further operands of the scan.",
    ),
    Row(
        _FILE,
        ("_reduction_lowering",),
        "The function of `{source}` uses arrays from outside: a reduction in a Triton kernel can only combine its own "
        "values.",
        "constants",
    ),
    Row(
        _FILE,
        ("_bitcast_convert_type_lowering_rule",),
        "`{source}` reads {a} as `{new_dtype}`, whose width differs: a Triton kernel can only reinterpret values as a "
        "type of the same width. Reinterpret the array outside of the kernel, or split the bits with shifts.",
        at=((1, "new_dtype"),),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
