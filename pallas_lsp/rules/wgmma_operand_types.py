"""
## What it does
Finds calls of `plgpu.wgmma` with element types that the instruction does not have: operands of two types, an
accumulator of a type that the operands cannot be accumulated in, operands of an unsupported type.

## Why it is wrong
Hopper's wgmma multiplies operands of one type and accumulates in few:

| operands | accumulator |
|---|---|
| float16 | float32 or float16 |
| bfloat16 | float32 |
| float32 (as tf32) | float32 |
| float8_e4m3fn, float8_e5m2 | float32 or float16 |
| int8 | int32 |

## Example
```python
acc = plgpu.ACC((64, 128), jnp.bfloat16)   # for bfloat16 operands
```

## Use instead
```python
acc = plgpu.ACC((64, 128), jnp.float32)    # and round when it is read: acc_ref[...].astype(jnp.bfloat16)
```

## Fix safety
Another accumulator type is a suggestion: the sum is kept in more bits and rounded where it is read.

## Applies to
Mosaic GPU on Hopper; jax 0.10, 0.11 and 0.12.

## Source
`wgmma` in `jax/_src/pallas/mosaic_gpu/primitives.py`; `wgmma` and `wgmma_m64` in
`jax/experimental/mosaic/gpu/wgmma.py`; `_run_scoped_lowering_rule` in `jax/_src/pallas/mosaic_gpu/lowering.py`; the
verifier of `mosaic_gpu.wgmma`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_mma import ACCUMULATORS, FP8, Mma, dtype_argument, dtype_text, loads, mma_of
from pallas_lsp.rules.shared.gpu_operands import LOWERING, MGPU, PRIMITIVES, VERIFIER, Operand, operands, place, quoted
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.uses import parameter, scoped_use
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("wgmma", "element types")
SPECIFICITY = 49
SITES = (
    (PRIMITIVES, "wgmma"),
    (f"{MGPU}wgmma.py", "wgmma"),
    (f"{MGPU}wgmma.py", "wgmma_m64"),
    (f"{MGPU}wgmma.py", "WGMMAAccumulator.zero"),
    (LOWERING, "_run_scoped_lowering_rule"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray.__init__", "is_signed"),
    (f"{MGPU}core.py", VERIFIER),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    mma = mma_of(fault, "wgmma")
    if mma is None:
        return _unsigned(fault, context)
    if mma.acc.space not in ("regs", "1"):
        return None
    a, b, acc = (quoted(context, fault, n, n) for n in ("a", "b", "acc"))
    mixed_fp8 = mma.a.dtype in FP8 and mma.b.dtype in FP8 and context.jax >= (0, 11)
    if mma.a.dtype != mma.b.dtype and not mixed_fp8:
        text = f"{a} is {mma.a.dtype} and {b} is {mma.b.dtype}, but `wgmma` multiplies operands of one type."
        return finding(__name__, fault, context, place(context, fault, "b"), text, _made(context, mma.a, mma.b))
    allowed = ACCUMULATORS.get(mma.a.dtype)
    if allowed is None:
        text = (
            f"{a} is {mma.a.dtype}, which `wgmma` cannot multiply: it takes float16, bfloat16, float32 (as tf32), "
            "float8_e4m3fn, float8_e5m2 and int8."
        )
        return finding(__name__, fault, context, place(context, fault, "a"), text, _made(context, mma.a))
    if mma.acc.dtype in allowed:
        return None
    text = (
        f"{acc} is {mma.acc.dtype}, but products of {mma.a.dtype} operands can only be accumulated in "
        f"{' or '.join(allowed)}."
    )
    related = _made(context, mma.acc, mma.a)
    return finding(__name__, fault, context, place(context, fault, "acc"), text, related, _fixes(context, mma))


def _made(context: Context, *refs: Operand) -> list[Related]:
    return [each for ref in refs for each in ref.related(context, f"It is allocated here, as {ref.type}.")]


def _unsigned(fault: Fault, context: Context) -> Finding | None:
    """An accumulator of unsigned integers, which no instruction has: refused where it is allocated."""
    if not raised_in(fault, LOWERING, "_run_scoped_lowering_rule") and not raised_in(fault, f"{MGPU}wgmma.py", "zero"):
        return None
    made = next((o for o in operands(fault).values() if o.space == "regs" and o.dtype.startswith("uint")), None)
    spot = made.allocation.spot(context) if made is not None and made.allocation is not None else None
    if made is None:
        return None
    node = dtype_argument(spot) if spot is not None else None
    location = spot.at(node).location if spot is not None and node is not None else context.locate(fault)
    text = f"An accumulator cannot be {made.dtype}: integer products are accumulated in int32."
    fixes = []
    if spot is not None and node is not None:
        edits = Editor(spot.path, spot.syntax)
        new = dtype_text(edits, spot.node, "int32")
        if new is not None:
            edits.replace(node, new)
            fixes.append(suggested("Accumulate in int32", edits))
    return finding(__name__, fault, context, location, text, (), fixes)


def _fixes(context: Context, mma: Mma) -> Iterator[Fix | None]:
    made = mma.acc.allocation.spot(context) if mma.acc.allocation is not None else None
    if made is None or not isinstance(made.node, ast.Call):
        return
    for dtype in ACCUMULATORS[mma.a.dtype]:
        plain = _retyped(made, dtype)
        reads = _reads(made)
        if plain is None:
            return
        node = dtype_argument(made)
        if reads and node is not None:
            rounded = _retyped(made, dtype)
            assert rounded is not None
            for read in reads:
                rounded.insert(made.syntax.span(read)[1], f".astype({made.syntax.source(node)})")
            yield suggested(f"Accumulate in {dtype} and convert to {mma.acc.dtype} where it is read", rounded)
        yield suggested(f"Accumulate in {dtype}", plain)


def _retyped(made: Spot, dtype: str) -> Editor | None:
    edits = Editor(made.path, made.syntax)
    node = dtype_argument(made)
    text = dtype_text(edits, made.node, dtype)
    if node is None or text is None:
        return None
    edits.replace(node, text)
    return edits


def _reads(made: Spot) -> list[ast.Subscript]:
    """Where the body of the scope around an allocation reads the accumulator."""
    call = made.syntax.parent(made.node)
    if not isinstance(call, ast.Call):
        return []
    use = scoped_use(made.at(call))
    if use is None:
        return []
    index = next((i for i, arg in enumerate(call.args) if arg is made.node), None)
    name = next((k.arg for k in call.keywords if k.value is made.node), None)
    if index is None and name is None:
        return []
    found = parameter(use, (index or 1) - 1, name)
    return loads(made.syntax, found) if found is not None else []
