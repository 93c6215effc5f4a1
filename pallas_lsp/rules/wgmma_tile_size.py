"""
## What it does
Finds products whose sizes Hopper's wgmma instruction does not have: m that is no multiple of 64, n that is no
multiple of 8 or larger than 256, k that is no multiple of the instruction's depth.

## Why it is wrong
One wgmma instruction of a warpgroup computes 64 rows and up to 256 columns, 32 bytes deep. Mosaic GPU repeats it for
more rows and for a longer k, but not for more columns, and it does not pad.

## Example
```python
acc = plgpu.ACC((96, 512), jnp.float32)
```

## Use instead
Rows in multiples of 64, and several accumulators for more than 256 columns:

```python
for half in range(2):
    columns = pl.ds(half * 256, 256)
    o[:, columns] = pl.run_scoped(functools.partial(product, columns), plgpu.ACC((128, 256), jnp.float32))
```

## Fix safety
The fixes change a size of the kernel's blocks and are suggestions.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`WGMMAAccumulator.zero`, `wgmma` and `wgmma_m64` in `jax/experimental/mosaic/gpu/wgmma.py`; `_wgmma_constraint_system`
in `jax/experimental/mosaic/gpu/layout_inference.py`; the verifier of `mosaic_gpu.wgmma`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_mma import Mma, mma_of
from pallas_lsp.rules.shared.gpu_operands import MGPU, VERIFIER, Operand, operands, place, quoted
from pallas_lsp.rules.shared.gpu_sizes import multiple, resized
from pallas_lsp.rules.shared.places import expression_at, frame_from
from pallas_lsp.rules.shared.site_table import narrowed

SINCE = "0.1.0"
CONSTRUCTS = ("wgmma",)
SPECIFICITY = 48
SITES = (
    (f"{MGPU}wgmma.py", "WGMMAAccumulator.zero"),
    (f"{MGPU}wgmma.py", "wgmma"),
    (f"{MGPU}wgmma.py", "wgmma_m64"),
    (f"{MGPU}layout_inference.py", "_wgmma_constraint_system"),
    (f"{MGPU}core.py", VERIFIER),
)
_M, _N, _N_MOST, _K_BYTES = 64, 8, 256, 32


@dataclass(frozen=True)
class _Wrong:
    operand: Operand
    dimension: int
    size: int
    new: int
    text: str


def judge(fault: Fault, context: Context) -> Finding | None:
    mma = mma_of(fault, "wgmma")
    if mma is None:
        return _allocated(fault, context)
    if not mma.two_dimensional:
        return None
    wrong = _of_accumulator(mma.acc, quoted(context, fault, "acc", "the accumulator")) or _of_depth(
        mma, quoted(context, fault, "a", "`a`")
    )
    if wrong is None:
        return None
    return _finding(fault, context, wrong, place(context, fault, wrong.operand.name))


def _allocated(fault: Fault, context: Context) -> Finding | None:
    """An accumulator that is refused where it is allocated: the product that uses it is named where it is known."""
    if not raised_in(fault, f"{MGPU}wgmma.py", "zero"):
        return None
    for entry in fault.facts.get("operands", ()):
        operand = next((o for o in operands(fault).values() if o.name == entry.get("name")), None)
        if operand is None or operand.space != "regs":
            continue
        wrong = _of_accumulator(operand, "the accumulator")
        if wrong is None:
            continue
        location = operand.allocation.location(context) if operand.allocation is not None else None
        frames = entry.get("used") or ()
        spot = expression_at(context, frame_from(frames[-1])) if frames else None
        if spot is not None:
            given = spot.syntax.argument(spot.node, 0, "acc") if isinstance(spot.node, ast.Call) else None
            location = narrowed((spot.at(given) if given is not None else spot).location, context)
        return _finding(fault, context, wrong, location or context.locate(fault))
    return None


def _of_accumulator(acc: Operand, name: str) -> _Wrong | None:
    if acc.shape is None or len(acc.shape) != 2:
        return None
    m, n = acc.shape
    if m % _M:
        new = multiple(m, _M)
        return _Wrong(acc, 0, m, new, f"{name} has {m} rows, but `wgmma` computes rows in multiples of {_M}.")
    if n % _N:
        new = multiple(n, _N)
        return _Wrong(acc, 1, n, new, f"{name} has {n} columns, but `wgmma` computes columns in multiples of {_N}.")
    if n > _N_MOST:
        text = (
            f"{name} has {n} columns, but one `wgmma` computes at most {_N_MOST}. Multiply in parts of {_N_MOST} "
            "columns, each with an accumulator of its own."
        )
        return _Wrong(acc, 1, n, _N_MOST, text)
    return None


def _of_depth(mma: Mma, name: str) -> _Wrong | None:
    k = mma.mnk[3]
    if not mma.a.bits:
        return None
    depth = _K_BYTES * 8 // mma.a.bits
    if k % depth == 0:
        return None
    text = (
        f"{name} has {k} columns of {mma.a.dtype}, but `wgmma` multiplies {_K_BYTES} bytes at a time: k has to be a "
        f"multiple of {depth}."
    )
    return _Wrong(mma.a, 1, k, multiple(k, depth), text)


def _finding(fault: Fault, context: Context, wrong: _Wrong, location: Location) -> Finding:
    text = wrong.text[0].upper() + wrong.text[1:] if wrong.text.startswith("the ") else wrong.text
    made = wrong.operand.allocation.location(context) if wrong.operand.allocation is not None else None
    related = (
        [Related(made, f"Its size comes from here: {wrong.operand.type}.")] if made not in (None, location) else []
    )
    return finding(__name__, fault, context, location, text, [r for r in related if r], _fixes(context, wrong))


def _fixes(context: Context, wrong: _Wrong) -> Iterator[Fix]:
    made = wrong.operand.allocation
    if made is None or wrong.dimension >= len(made.shape) or made.shape[wrong.dimension] != wrong.size:
        return
    why = "the rows of the product" if wrong.dimension == 0 else "the columns of the product"
    if wrong.operand.name == "a":
        why = "the depth of the product"
    yield from resized(made.spot(context), wrong.dimension, wrong.size, wrong.new, why)
