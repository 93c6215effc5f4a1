"""
## What it does
Finds block specs with `transforms=` (tilings, swizzles) in a launch that is not compiled by Mosaic GPU.

## Why it is wrong
How the elements of a block lie in shared memory is something that only Mosaic GPU lets a kernel say. From jax 0.11 on
`pl.pallas_call` compiles for Triton on a GPU, which decides that itself and cannot read such a ref.

## Example
```python
pl.pallas_call(kernel, ..., in_specs=[plgpu.BlockSpec((64, 128), lambda i: (i, 0), transforms=(tiling, swizzle))])
```

## Use instead
```python
pl.pallas_call(kernel, ..., in_specs=[pl.BlockSpec((64, 128), lambda i: (i, 0))])
```

## Fix safety
Leaving the transforms out is safe: they change where elements lie, not what they are.

## Applies to
`pl.pallas_call`; jax 0.11 and 0.12. (In jax 0.10 it compiles with Mosaic GPU.)

## Source
Python's own AttributeError for `UntilingTransform` and `UnswizzleRef` (`jax/_src/pallas/mosaic_gpu/core.py`) in the
lowering of another backend.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding, safe
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps", "Triton")
SPECIFICITY = 60
_TRANSFORM = re.compile(r"'(?:Untiling|Unswizzle|Tiling|Swizzle|Transpose)\w*' object has no attribute")


def judge(fault: Fault, context: Context) -> Finding | None:
    if fault.stage != "lower" or not _TRANSFORM.search(fault.message):
        return None
    launch = launch_of(fault, context)
    if launch is None or launch.api != "pl.pallas_call":
        return None
    found = list(_given(launch))
    if not found:
        return None
    first, keyword = found[0]
    message = (
        "`transforms` say how a block lies in the shared memory of a Mosaic GPU kernel, but this launch is not "
        "compiled by Mosaic GPU. Leave them out, or launch with `plgpu.kernel`."
    )
    related = [Related(launch.name, "This launches the kernel.")]
    related += [Related(spot.at(other.value).location, "These, too.") for spot, other in found[1:]]
    place = first.at(keyword.value).location
    return finding(__name__, fault, context, place, message, related, [_without(found)])


def _given(launch: Launch) -> Iterator[tuple[Spot, ast.keyword]]:
    """The calls with ``transforms=`` in the specs of a launch."""
    seen: set[ast.AST] = set()
    for name in ("in_specs", "out_specs"):
        spot = launch.argument(name)
        value = spot.syntax.value(spot.node) if spot is not None else None
        for node in ast.walk(value) if value is not None else ():
            call = spot.syntax.value(node) if spot is not None and isinstance(node, ast.Call | ast.Name) else None
            if spot is None or not isinstance(call, ast.Call) or call in seen:
                continue
            seen.add(call)
            for keyword in call.keywords:
                if keyword.arg == "transforms":
                    yield spot.at(call), keyword


def _without(found: list[tuple[Spot, ast.keyword]]) -> Fix | None:
    editors: dict[str, Editor] = {}
    for spot, keyword in found:
        assert isinstance(spot.node, ast.Call)
        editors.setdefault(spot.path, Editor(spot.path, spot.syntax)).remove_argument(spot.node, keyword)
    return safe("Leave the transforms out", *editors.values())
