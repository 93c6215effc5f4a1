"""
## What it does
Finds stores of a value whose shape is not that of the part of the ref that it is stored into.

## Why it is wrong
A store does not broadcast: the value must have the shape of `ref[index]`, a scalar included. An integer index drops its
dimension, a slice keeps it.

## Example
```python
# o_ref has the shape (128, 1)
o_ref[...] = jnp.sum(x_ref[...], axis=1)
```

## Use instead
```python
o_ref[...] = jnp.sum(x_ref[...], axis=1, keepdims=True)
```

## Fix safety
Keeping a reduced dimension, and dropping or adding dimensions of size 1, is safe: the same numbers go to the same
places. Broadcasting, transposing and reshaping are suggestions.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_swap_abstract_eval` and `_addupdate_abstract_eval` in `jax/_src/state/primitives.py`, "Invalid shape for".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.stores import Store, reshaped, store_of
from pallas_lsp.rules.shared.wording import shape_text

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SITES = (
    ("jax/_src/state/primitives.py", "_swap_abstract_eval"),
    ("jax/_src/state/primitives.py", "_addupdate_abstract_eval"),
)

_FILE = "jax/_src/state/primitives.py"


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, _FILE, "_swap_abstract_eval", "_addupdate_abstract_eval"):
        return None
    mismatch = fault.facts.get("mismatch")
    if not isinstance(mismatch, Mapping):
        return None
    wanted, given = mismatch["ref"].get("shape"), mismatch["value"].get("shape")
    if wanted is None or given is None or wanted == given:
        return None
    store = store_of(fault, context)
    target = f"`{short(store.target_text, 40)}`" if store is not None else "the ref"
    location = store.location if store is not None else context.locate(fault)
    source = f"`{short(context.source(location), 50)}`" if store is not None else "The value"
    a_scalar = "is a scalar" if given == [] else f"has the shape {shape_text(given)}"
    message = (
        f"{source} {a_scalar}, but {target} takes the shape {shape_text(wanted)}: "
        "a store does not broadcast or reshape."
    )
    related = []
    if store is not None and store.target_location is not None:
        related.append(Related(store.target_location, f"This part of the ref has the shape {shape_text(wanted)}."))
    return finding(__name__, fault, context, location, message, related, _fixes(store, given, wanted))


def _fixes(store: Store | None, given: list[int], wanted: list[int]) -> Iterator[Fix | None]:
    if store is not None and all(isinstance(d, int) for d in (*given, *wanted)):
        yield from reshaped(store, given, wanted)
