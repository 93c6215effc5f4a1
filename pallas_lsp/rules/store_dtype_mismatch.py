"""
## What it does
Finds stores of a value whose dtype is not that of the ref.

## Why it is wrong
A store does not convert: a float32 result cannot be stored into a bfloat16 ref as it is.

## Example
```python
# o_ref holds bfloat16
o_ref[...] = jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)
```

## Use instead
```python
acc = jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)
o_ref[...] = acc.astype(o_ref.dtype)
```

## Fix safety
Converting a float to the float type of the ref is safe: it is the only way to store it there. Other conversions, from
floats to integers for example, are suggestions.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_swap_abstract_eval` and `_addupdate_abstract_eval` in `jax/_src/state/primitives.py`, "Invalid dtype for".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.stores import Store, parenthesised, store_of
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("refs", "element types")
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
    wanted, given = mismatch["ref"], mismatch["value"]
    if wanted.get("shape") != given.get("shape") or wanted.get("dtype") == given.get("dtype"):
        return None
    store = store_of(fault, context)
    location = store.location if store is not None else context.locate(fault)
    target = f"`{short(store.target_text, 40)}`" if store is not None else "the ref"
    source = f"`{short(context.source(location), 50)}`" if store is not None else "The value"
    result = "The result" if store is not None and store.augmented else source
    message = (
        f"{result} is {given.get('dtype')}, but {target} holds {wanted.get('dtype')}: a store does not convert. "
        "Convert the value with `.astype(...)`."
    )
    related = []
    if store is not None and store.target_location is not None:
        related.append(Related(store.target_location, f"This ref holds {wanted.get('dtype')}."))
    return finding(__name__, fault, context, location, message, related, _fixes(store, wanted, given))


def _fixes(store: Store | None, wanted: Mapping[str, object], given: Mapping[str, object]) -> Iterator[Fix | None]:
    if store is None:
        return
    both_floats = all("float" in str(each.get("dtype")) for each in (wanted, given))
    make = safe if both_floats else suggested
    converted = f".astype({store.ref_text}.dtype)"
    title = f"Convert the value to {wanted.get('dtype')}, the ref's type"
    editor = Editor(store.path, store.syntax)
    if store.augmented:
        # The sum has the wider type, whatever the value is: convert it as a whole.
        editor.replace(store.statement, f"{store.target_source} = ({store.whole_value()}){converted}")
    else:
        editor.replace(store.value, parenthesised(store.syntax, store.value) + converted)
    yield make(title, editor)
