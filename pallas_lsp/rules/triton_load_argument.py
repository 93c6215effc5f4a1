"""
## What it does
Finds loads, stores and atomic operations of a Triton kernel with arguments that do not go together: `other` without a
mask, a mask of another shape than the block, an unknown cache modifier or eviction policy, a ref that is indexed twice,
an atomic operation on a block where a scalar is needed, and hints (`pl.multiple_of`) with the wrong number of values.

## Why it is wrong
Each becomes one Triton instruction on a block of pointers, and mask and value have to have an element for each pointer.
Triton adds axes of size 1 to nothing: a mask for the columns needs its rows written as `mask[None, :]`.

## Example
```python
columns = jnp.arange(64)
x = plt.load(x_ref, mask=columns < 60, other=0.0)  # x_ref is (64, 64)
```

## Use instead
```python
columns = jnp.arange(64)
x = plt.load(x_ref, mask=columns[None, :] < 60, other=0.0)
```

## Fix safety
Adding the missing axis of a mask is suggested: which axis is meant is a guess where the block is square. Leaving out an
`other` that has no mask, a cache modifier or an eviction policy changes no result and is safe.

## Applies to
Kernels for NVIDIA GPUs that are lowered through Triton; jax 0.10, 0.11 and 0.12.

## Source
`_load`, `_store`, `_bcast_to`, `_masked_load_lowering_rule`, `_masked_swap_lowering_rule`, `_multiple_of_rule` in
`jax/_src/pallas/triton/lowering.py`; `_atomic_cas_abstract_eval` and `_max_contiguous_rule` in
`jax/_src/pallas/triton/primitives.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import keyword_edits, site_table
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("Triton", "refs")

_FILE = "jax/_src/pallas/triton/lowering.py"
_PRIMITIVES = "jax/_src/pallas/triton/primitives.py"
_ACCESS = frozenset({"masked_load", "masked_swap", "atomic_rmw", "get", "swap", "addupdate"})
_MASK = ((None, "mask"), (1, "mask"))


def _safe_removal(name: str, title: str) -> Callable[[Details], Sequence[Fix]]:
    def fixes(details: Details) -> Sequence[Fix]:
        return keyword_edits.remove_keyword(details.spot, name, title, Safety.SAFE)

    return fixes


def _mask_axes(details: Details) -> Sequence[Fix]:
    """``mask`` -> ``mask[:, None]`` or ``mask[None, :]``, by the axis of the block that has its size."""
    spot = details.argument(None, "mask")
    mask, block = _sizes(details["given"]), _sizes(details["wanted"])
    if spot is None or len(mask) != 1 or len(block) < 2:
        return ()
    found: list[Fix] = []
    for axis in reversed([a for a, size in enumerate(block) if size == mask[0]]):
        index = ", ".join(":" if a == axis else "None" for a in range(len(block)))
        simple = re.fullmatch(r"[\w.]+(\[.*\])?", spot.source)
        before, after = ("", "") if simple else ("(", ")")
        title = f"Apply the mask along axis {axis}"
        found += keyword_edits.wrap(spot, before, f"{after}[{index}]", title)
    return found


def _sizes(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


_ROWS = (
    Row(
        _FILE,
        ("_load",),
        "`other` is what a load gives where its mask is false, but `{source}` has no mask: give it one, or leave out "
        "`other`.",
        "other requires mask",
        at=((None, "other"),),
        fixes=_safe_removal("other", "Leave out `other`"),
    ),
    Row(
        _FILE,
        ("_load", "_store"),
        "`{source}` reads or writes one element, so its {what} has to be a scalar, not a block.",
        r"(?P<what>other|mask|value) cannot be a block",
        at=((None, "mask"), (None, "other")),
    ),
    Row(
        _FILE,
        ("_load",),
        "`{modifier}` is no cache modifier of a load: there are `.ca` and `.cg`.",
        r"unsupported cache modifier: (?P<modifier>\S+)",
        at=((None, "cache_modifier"),),
        fixes=_safe_removal("cache_modifier", "Leave out the cache modifier"),
    ),
    Row(
        _FILE,
        ("_store",),
        "`{modifier}` is no cache modifier of a store: there are `.wb`, `.cg`, `.cs` and `.wt`.",
        r"unsupported cache modifier: (?P<modifier>\S+)",
        at=((None, "cache_modifier"),),
        fixes=_safe_removal("cache_modifier", "Leave out the cache modifier"),
    ),
    Row(
        _FILE,
        ("_load", "_store"),
        "`{policy}` is no eviction policy: there are `evict_first` and `evict_last`.",
        r"unsupported eviction policy: (?P<policy>\S+)",
        at=((None, "eviction_policy"),),
        fixes=_safe_removal("eviction_policy", "Leave out the eviction policy"),
    ),
    Row(
        _FILE,
        ("_bcast_to",),
        "The mask (or value) of `{source}` has shape {given}, which does not fit the block of shape {wanted}: give it "
        "the missing axes, as in `mask[None, :]` or `mask[:, None]`.",
        r"Cannot broadcast from (?P<given>\[[\d, ]*\]) to (?P<wanted>\[[\d, ]*\])",
        at=_MASK,
        primitives=_ACCESS,
        fixes=_mask_axes,
    ),
    Row(
        _FILE,
        ("_bcast_to",),
        "`{source}` makes {wanted} out of {given}, whose sizes do not fit: in a Triton kernel every axis has to be "
        "there first (`x[:, None]`) and have the same size or 1.",
        r"Cannot broadcast from (?P<given>\[[\d, ]*\]) to (?P<wanted>\[[\d, ]*\])",
    ),
    Row(
        _FILE,
        ("_masked_load_lowering_rule", "_masked_swap_lowering_rule", "_swap_lowering_rule", "_addupdate_lowering_rule"),
        "`{source}` indexes {ref} more than once, which a Triton kernel cannot do: put the indices together in one, "
        "`x_ref[pl.ds(start, size), ...]`.",
        "multiple indexers",
    ),
    Row(
        _PRIMITIVES,
        ("_atomic_lowering_rule",),
        "`{source}` indexes {ref} more than once, which a Triton kernel cannot do: put the indices together in one.",
        "single indexer",
    ),
    Row(
        _PRIMITIVES,
        ("_atomic_cas_abstract_eval",),
        "`{source}` compares and swaps a block, but `atomic_cas` works on one element: use a ref of shape ().",
        r"(?P<what>ref|cmp|val) must be scalar",
    ),
    Row(
        _PRIMITIVES,
        ("_atomic_cas_abstract_eval",),
        "The values to compare and to swap of `{source}` differ in type or shape: they have to be alike, and like the "
        "ref's element.",
        "identical dtypes",
        at=((2, "val"),),
    ),
    Row(
        _FILE,
        ("_multiple_of_rule",),
        "`{source}` gives {values} as multiples for {a}: there has to be one for each axis (one for a scalar).",
        at=((1, "values"),),
        exceptions=("AssertionError",),
    ),
    Row(
        _PRIMITIVES,
        ("_max_contiguous_rule",),
        "`{source}` gives {values} for {a}: there has to be one for each axis.",
        at=((1, "values"),),
        exceptions=("AssertionError",),
    ),
    Row(
        _PRIMITIVES,
        ("_elementwise_inline_asm_abstract_eval",),
        "The arguments of `{source}` differ in shape: inline assembly works on elements, so that all have to have the "
        "same shape.",
        at=((None, "args"), (1, "args")),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
