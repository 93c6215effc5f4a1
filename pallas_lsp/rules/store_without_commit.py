"""
## What it does
Finds SMEM that is stored to and then handed to the copy engine or a tensor core without `plgpu.commit_smem()`.

## Why it is wrong
`copy_smem_to_gmem`, `wgmma` and `tcgen05_mma` read shared memory past the path that ordinary stores take. Only
`plgpu.commit_smem()` makes the stores of all threads visible there; without it old contents may be read. Nothing is
refused: the results are wrong now and then.

## Example
```python
o_smem[...] = jnp.maximum(x_gmem[...], 0.0)
plgpu.copy_smem_to_gmem(o_smem, o_gmem)
```

## Use instead
```python
o_smem[...] = jnp.maximum(x_gmem[...], 0.0)
plgpu.commit_smem()
plgpu.copy_smem_to_gmem(o_smem, o_gmem)
```

## Fix safety
Safe: a commit changes nothing but what the reader sees.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`commit_smem_p` and `copy_smem_to_gmem_p` in `jax/_src/pallas/mosaic_gpu/primitives.py`; no version checks it.
"""

from __future__ import annotations

import ast

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.async_order import commit_before
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, related, related_spots, silent_finding, spot_of

SINCE = "0.1.0"
CONSTRUCTS = ("copies", "SMEM and TMEM")
OF_ORDER = True
_READERS = {
    "copy_smem_to_gmem": "the copy engine",
    "wgmma_ref": "the tensor core",
    "tcgen05_mma": "the tensor core",
    "async_copy_smem_to_tmem": "the tensor core",
    "async_load": "`async_load_tmem`",
}
_WRITERS = {"copy_gmem_to_smem": "the copy engine", "async_store_tmem": "another store"}


def judge(fault: Fault, context: Context) -> Finding | None:
    if not checked(fault, "store-without-commit"):
        return None
    reader = spot_of(fault, context)
    store = next(related_spots(fault, context), None)
    kind = str(fault.facts.get("reader"))
    in_tmem = fault.facts.get("memory_space") == "tmem"
    commit = "commit_tmem" if in_tmem else "commit_smem"
    name = _stored(store) or ("TMEM" if in_tmem else "SMEM")
    if kind in _WRITERS:
        text = (
            f"{name} was stored to, and {_WRITERS[kind]} overwrites it here without `plgpu.{commit}()` in between: the "
            "store may land after it."
        )
    else:
        text = (
            f"{name} was stored to, and {_READERS.get(kind, 'the copy engine')} reads it here without "
            f"`plgpu.{commit}()` in between: it may see what was there before."
        )
    where = narrow(reader) if reader is not None else context.locate(fault)
    others = related(fault, context, "This store is not committed.")
    fix = commit_before(reader, commit) if reader is not None else None
    return silent_finding(__name__, fault, context, where, text, others, [fix])


def _stored(store: Spot | None) -> str:
    """What was stored to, as the source names it."""
    if store is None:
        return ""
    target: ast.AST | None = store.node.value if isinstance(store.node, ast.Subscript) else store.node
    if isinstance(target, ast.Call):
        target = store.syntax.arguments(target).get(0, "ref")
    return f"`{short(store.syntax.source(target), 40)}`" if target is not None else ""
