"""
## What it does
Finds random numbers in TPU kernels that cannot be made: keys that do not lie in SMEM, keys of the wrong kind, seeds
that are vectors, and shapes that the generator does not have.

## Why it is wrong
A TPU has a generator of its own, which is seeded with scalars and fills whole registers. Keys are scalars too and have
to come from SMEM. They are Pallas keys (`pltpu.to_pallas_key`), which cannot be split or taken apart.

## Example
```python
def kernel(key_ref, o_ref):
    o_ref[...] = jax.random.uniform(key_ref[...], o_ref.shape)

pl.pallas_call(kernel, ...)(pltpu.to_pallas_key(key))  # the key lies in VMEM
```

## Use instead
```python
pl.pallas_call(kernel, in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)], ...)(pltpu.to_pallas_key(key))
```

## Fix safety
Keeping the key in SMEM is safe.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`_load_lowering_rule`, `_prng_key_load_lowering_rule`, `_prng_seed_lowering_rule`, `_prng_random_bits_lowering_rule`,
`random_unwrap_lowering` and others in `jax/_src/pallas/mosaic/lowering.py`, and `jax/_src/pallas/mosaic/random.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import block_sizes, site_table
from pallas_lsp.rules.shared.compiler_params import TPU
from pallas_lsp.rules.shared.launches import launch_of
from pallas_lsp.rules.shared.site_table import Details, Row
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("TPU",)

_LOWERING = "jax/_src/pallas/mosaic/lowering.py"
_RANDOM = "jax/_src/pallas/mosaic/random.py"
_PALLAS = ("jax.experimental.pallas", "pl")


def _to_smem(details: Details) -> Sequence[Fix]:
    """The key's spec in SMEM; where the launch has no specs, one for each input."""
    ref = details.ref
    if ref.role != "inputs":
        return ()
    block = block_sizes.block_of(details.fault, details.context, "inputs", ref.index)
    launch = launch_of(details.fault, details.context)
    title = f"Keep {ref} in SMEM"
    if block is not None:
        editor = Editor(block.spot.path, block.spot.syntax)
        smem = editor.spell(f"{TPU[0]}.SMEM", block.call, TPU)
        given = next((k for k in block.call.keywords if k.arg == "memory_space"), None)
        if smem is None or block.call.args:
            return ()
        if given is not None:
            editor.replace(given.value, smem)
        else:
            editor.insert_argument(block.call, f"memory_space={smem}")
        return (Fix(title, editor.edits(), Safety.SAFE),)
    capture = details.context.capture(details.fault)
    if launch is None or launch.argument("in_specs", "grid_spec", "grid") or not launch.arguments().complete:
        return ()
    count = len(capture.arguments.split("], ")) if capture is not None else 0
    editor = Editor(launch.spot.path, launch.syntax)
    smem = editor.spell(f"{TPU[0]}.SMEM", launch.call, TPU)
    spec = editor.spell(f"{_PALLAS[0]}.BlockSpec", launch.call, _PALLAS)
    if smem is None or spec is None or not count:
        return ()
    specs = [f"{spec}(memory_space={smem})" if i == ref.index else f"{spec}()" for i in range(count)]
    editor.insert_argument(launch.call, f"in_specs=[{', '.join(specs)}]")
    return (Fix(title, editor.edits(), Safety.SAFE),)


_ROWS = (
    Row(
        _LOWERING,
        ("_load_lowering_rule",),
        "{ref} is a random key, which can only be read from SMEM: give it `pl.BlockSpec(memory_space=pltpu.SMEM)`.",
        "PRNG keys must be loaded from SMEM",
        fixes=_to_smem,
        related=lambda d: d.ref.made_here("given its spec"),
    ),
    Row(
        _LOWERING,
        ("_prng_key_load_lowering_rule",),
        "`{source}` reads several keys or a part of one: a load takes one key, as in `key_ref[0]` or `key_ref[...]`.",
    ),
    Row(
        _LOWERING,
        ("_prng_seed_lowering_rule",),
        "`{source}` seeds with an array ({a}): a seed is made of scalar integers, as in "
        "`pltpu.prng_seed(seed_ref[0])` with the seed in SMEM.",
        at=((0, "seeds"),),
    ),
    Row(
        _LOWERING,
        ("_prng_random_bits_lowering_rule",),
        "`{source}` makes {out}: the generator fills arrays of at least two dimensions. Make `(1, n)` and "
        "take its first row.",
        "rank>=2",
        at=((0, "shape"),),
    ),
    Row(
        _LOWERING,
        ("random_bits_lowering",),
        "`{source}` asks for {bit_width} bits, but the generator of a TPU gives 32: cast afterwards.",
        exceptions=("AssertionError",),
    ),
    Row(
        _LOWERING,
        ("random_unwrap_lowering",),
        "`{source}` takes a Pallas key apart, which is done with `pltpu.split_pallas_seed`.",
    ),
    Row(
        _LOWERING,
        ("random_wrap_lowering",),
        "`{source}` makes a key of numbers, which is done with `pltpu.wrap_pallas_seed`.",
    ),
    Row(
        _RANDOM,
        ("_split",),
        "A Pallas key cannot be split: derive keys with `jax.random.fold_in(key, i)`.",
    ),
    Row(
        _RANDOM,
        ("_random_bits", "_pl_stateful_random_bits"),
        "A Pallas key gives 32 random bits at a time: ask for uint32 or float32, and cast afterwards.",
        "[Bb]it width",
    ),
    Row(
        _RANDOM,
        ("_pl_stateful_fold_in", "_pl_stateful_split"),
        "A stateful Pallas key has no `fold_in` or `split`: seed with other numbers instead (`pltpu.prng_seed`).",
    ),
    Row(
        _RANDOM,
        ("sample_block",),
        "`block_size` and `tile_size` differ in length: both need one number for each dimension.",
        at=((None, "tile_size"), (None, "block_size")),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
