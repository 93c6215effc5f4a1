"""
## What it does
Finds arrays in a Triton kernel whose size is not a power of two: loads and stores of such blocks, `jnp.arange(48)`,
`jnp.zeros((24,))` and whatever is computed from them.

## Why it is wrong
Triton divides the elements of a block among the threads of a warp and works on blocks whose number of elements is a
power of two only. The block of an array is what the BlockSpec (or, without one, the whole array) says.

## Example
```python
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2  # a block of (8, 96)
```

## Use instead
A larger block with a mask that leaves out what lies beyond the array:

```python
def kernel(x_ref, o_ref):
    columns = jnp.arange(128)
    inside = columns < 96
    x = plt.load(x_ref.at[:, columns], mask=inside[None, :], other=0.0)
    plt.store(o_ref.at[:, columns], x * 2, mask=inside[None, :])
```

Reductions have to leave out the padding too. Or pad the array with `jnp.pad` outside of the kernel. A block that tiles
a longer axis can simply have another size.

## Fix safety
Where the block tiles a longer axis, another power of two is suggested (with the grid). Otherwise there is no fix:
whether the padding matters depends on the kernel.

## Applies to
Kernels for NVIDIA GPUs that are lowered through Triton; jax 0.10, 0.11 and 0.12.

## Source
`_check_tensor_size` in `jax/_src/pallas/triton/lowering.py`, and Triton's own verifier ("Number of elements must be
power-of-two") for operations that jax does not check.
"""

from __future__ import annotations

import math
import re

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.shared import block_sizes, operand_refs, site_table
from pallas_lsp.rules.shared.operand_refs import KernelRef
from pallas_lsp.rules.shared.site_table import Details
from pallas_lsp.rules.shared.wording import shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("Triton",)

_FILE = "jax/_src/pallas/triton/lowering.py"
SITES = ((_FILE, "_check_tensor_size"),)

_SHAPE = re.compile(r"array of shape \((?P<shape>[\d, ]*)\)")
_MLIR = re.compile(r"(?:Number of elements must be power-of-two|size must be a power of two|must be a power of 2)")
_TENSOR = re.compile(r"tensor<((?:\d+x)+)")


def judge(fault: Fault, context: Context) -> Finding | None:
    shape = _shape(fault)
    if shape is None:
        return None
    details = Details(fault, context)
    ref = _ref(details, shape)
    better = tuple(_up(size) for size in shape)
    message = (
        f"`{details.source}` {_verb(details)} an array of shape {shape_text(shape)}, {math.prod(shape)} elements, but "
        f"Triton works only on blocks whose size is a power of two: make it {shape_text(better)} and "
        f"{'mask what lies beyond' if ref is not None else 'leave out the rest with a mask'}."
    )
    return site_table.make(
        rule_name(__name__),
        fault,
        context,
        details.location,
        message,
        fixes=_resizes(fault, context, ref, shape) if ref is not None else (),
        related=_related(ref),
    )


def _shape(fault: Fault) -> tuple[int, ...] | None:
    """The shape that is refused."""
    if raised_in(fault, *SITES[0]):
        match = _SHAPE.search(fault.message)
        return tuple(int(d) for d in match["shape"].split(",") if d.strip()) if match else None
    if not passed_through(fault, _FILE) or not _MLIR.search(fault.message):
        return None
    for tensor in _TENSOR.findall(fault.message):
        sizes = tuple(int(d) for d in tensor.rstrip("x").split("x"))
        if _up(math.prod(sizes)) != math.prod(sizes):
            return sizes
    return None


def _up(size: int) -> int:
    """The next power of two."""
    return 1 << max(size - 1, 0).bit_length()


def _verb(details: Details) -> str:
    name = details.equation.primitive if details.equation is not None else ""
    if name in ("get", "masked_load"):
        return "loads"
    if name in ("swap", "masked_swap", "addupdate"):
        return "stores"
    return "makes" if name in ("iota", "broadcast_in_dim", "full") else "works on"


def _ref(details: Details, shape: tuple[int, ...]) -> KernelRef | None:
    """The ref of a load or store of the whole block."""
    for ref in details.refs:
        if ref.role and tuple(ref.shape) == shape:
            return ref
    return None


def _related(ref: KernelRef | None) -> tuple[Related, ...]:
    if ref is None or ref.spec is None:
        return ()
    return (Related(ref.spec, f"The block of `{ref.name}` is given here."),)


def _resizes(fault: Fault, context: Context, ref: KernelRef, shape: tuple[int, ...]) -> list[Fix]:
    """Other sizes for the one dimension that is no power of two, where the block tiles a longer axis."""
    wrong = [d for d, size in enumerate(shape) if _up(size) != size]
    block = list(operand_refs.spec_of(fault, ref.role, ref.index).get("block_shape") or ())
    array = operand_refs.array_shape(fault, context, ref)
    if len(wrong) != 1 or not block or len(array) != len(block):
        return []
    kept = [d for d, size in enumerate(block) if isinstance(size, int)]
    dimension = kept[wrong[0]] if wrong[0] < len(kept) else None
    if dimension is None or len(kept) != len(shape):
        return []
    old, whole = block[dimension], array[dimension]
    sizes = [size for size in (_up(old), _up(old) // 2) if whole % size == 0 and size < whole]
    found = [block_sizes.resized(fault, context, ref.role, ref.index, dimension, old, size) for size in sizes]
    return [fix for fix in found if fix is not None]
