"""
## What it does
Finds `jax.vmap` where jax cannot map: over reads and writes of refs inside of a kernel, and over launches that have no
batched form.

## Why it is wrong
`vmap` rewrites a program for one element into one for many. A ref that was not mapped has one value, so that writing a
mapped value into it would be many writes to one place; reads can be mapped where one whole index is an array, not where
a slice starts at a different place for each element. A launch is mapped by one more axis of its grid, which launches on
a mesh do not have.

## Example
```python
def kernel(x_ref, i_ref, o_ref):
    o_ref[...] = jax.vmap(lambda i: x_ref[i, pl.ds(i, 2)])(i_ref[...])
```

## Use instead
```python
def kernel(x_ref, i_ref, o_ref):
    @pl.loop(0, 4)
    def _(n):
        i = i_ref[n]
        o_ref[n] = x_ref[i, pl.ds(i, 2)]
```

## Fix safety
This rule offers no fix: what the loop has to store where is not in the mapped function.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_get_vmap`, `_swap_vmap`, `_addupdate_vmap` and `_batch_indexer` in `jax/_src/state/primitives.py`;
`_pallas_call_batching_rule` and `_batch_with_explicit_loop` in `jax/_src/pallas/pallas_call.py`;
`_mpmd_map_batching_rule` in `jax/_src/pallas/mpmd.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_lsp.model import Fault, Finding, Related
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.places import Spot, expression_at
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("derivatives and vmap",)
_STATE = "jax/_src/state/primitives.py"
_CALL = "jax/_src/pallas/pallas_call.py"
_MPMD = "jax/_src/pallas/mpmd.py"
_LOOP = "loop over the elements instead, with `pl.loop` or `jax.lax.fori_loop`"


def _mapped(details: Details) -> Spot | None:
    """``jax.vmap`` in the innermost user frame that calls what it returns."""
    for frame in reversed(details.context.frames(details.fault)):
        spot = expression_at(details.context, frame)
        call = spot.node if spot is not None else None
        for _ in range(4):
            if not isinstance(call, ast.Call) or spot is None:
                break
            if spot.syntax.dotted(call.func) == "jax.vmap":
                return spot.at(call.func)
            inner = spot.syntax.value(call.func)
            call = inner if isinstance(inner, ast.Call) else None
    return None


def _related(details: Details) -> Sequence[Related]:
    spot = _mapped(details)
    return [Related(spot.location, "It is mapped here.")] if spot is not None else []


def _rows() -> Iterator[Row]:
    for function in ("_swap_vmap", "_addupdate_vmap"):
        what = "stores" if function == "_swap_vmap" else "adds"
        yield Row(
            _STATE,
            (function,),
            f"`{{source}}` {what} a value that `jax.vmap` maps into a ref that is not mapped: all elements would go to "
            f"one place. Return the value from the mapped function and store the result, or {_LOOP}.",
            "unbatched array reference",
            related=_related,
        )
    yield Row(
        _STATE,
        ("_get_vmap", "_swap_vmap", "_addupdate_vmap"),
        "`{source}` indexes {ref} more than once inside of `jax.vmap`, which cannot map that: put the indices together "
        f"in one `ref[...]`, or {_LOOP}.",
        "multiple indexers",
        related=_related,
    )
    yield Row(
        _STATE,
        ("_batch_indexer",),
        f"`{{source}}` takes a slice that starts elsewhere for each element of `jax.vmap`: {_LOOP}.",
        "nontrivial slices",
        related=_related,
    )
    yield Row(
        _CALL,
        ("_pallas_call_batching_rule",),
        "This launch is on a mesh, and `jax.vmap` maps launches by one more axis of a grid, which a mesh does not get. "
        "Make the batch an axis of the mesh's grid and index it in the kernel.",
        "with a mesh",
        related=_related,
    )
    yield Row(
        _CALL,
        ("_pallas_call_batching_rule",),
        "This launch has a size or prefetched numbers that differ for each element of `jax.vmap`, on an axis of a mesh "
        "of devices: loop over the elements with `jax.lax.map` inside of `jax.shard_map`.",
        exceptions=("NotImplementedError",),
        related=_related,
    )
    yield Row(
        _CALL,
        ("_pallas_call_batching_rule", "_batch_with_explicit_loop"),
        "This launch has no arrays as inputs that `jax.vmap` could map: give it one, or call it once.",
        "with no arguments",
        related=_related,
    )
    yield Row(
        _MPMD,
        ("_mpmd_map_batching_rule",),
        "`jax.vmap` cannot map this launch over {size} elements: kernels on a mesh have no batched form. Make the "
        "batch an axis of the mesh's grid, or loop with `jax.lax.map`.",
        r"batch dimension of 1, got (?P<size>\S+)",
        related=_related,
    )
    yield Row(
        _MPMD,
        ("_mpmd_map_batching_rule",),
        "This launch uses a mapped number from outside of its kernel: pass it as an input.",
        "Closed-over scalar",
        related=_related,
    )


_ROWS = tuple(_rows())
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
