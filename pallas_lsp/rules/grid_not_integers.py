"""
## What it does
Finds grids that hold something else than integers.

## Why it is wrong
The grid says how often the kernel runs along each axis. Sizes have to be Python integers (or traced integers, where the
backend takes them); a true division makes a float even where it comes out even.

## Example
```python
grid=(x.shape[0] / 128,)
```

## Use instead
```python
grid=(x.shape[0] // 128,)             # where 128 divides the size
grid=(pl.cdiv(x.shape[0], 128),)      # where it may not
```

## Fix safety
The fixes are suggestions: `//` leaves the rest of an array out where the block does not divide its size, `pl.cdiv`
covers it with a block that reaches past the end.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`GridSpec.__init__` in `jax/_src/pallas/core.py`, "Grid must be a tuple of integers or jax.Array".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.arithmetic import integer_edits
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot, call_at
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("threads and grids",)
SITES = (
    ("jax/_src/pallas/core.py", "GridSpec.__init__"),
    ("jax/_src/pallas/mosaic/core.py", "PrefetchScalarGridSpec.__init__"),
)

_INTEGERS = ("int",)


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/core.py", "__init__"):
        return None
    given = (fault.facts.get("launch") or {}).get("given_grid")
    if not isinstance(given, Mapping):
        return None
    items = given.get("items")
    wrong = [i for i, item in enumerate(items or ()) if item.get("kind") not in _INTEGERS]
    if items is not None and not wrong:
        return None
    spot = _grid(fault, context)
    element = _element(spot, wrong[0], len(items)) if spot is not None and items else spot
    location = (
        element.location if element is not None else (spot.location if spot is not None else _launch(fault, context))
    )
    shown = items[wrong[0]] if items else given
    source = f"`{short(context.source(location))}`" if element is not None else "A size of the grid"
    message = f"{source} is {_described(shown)}, but a grid holds integers: how often the kernel runs along each axis."
    return finding(__name__, fault, context, location, message, (), _fixes(element))


def _described(item: Mapping[str, Any]) -> str:
    kind, text = str(item.get("kind")), str(item.get("text"))
    kinds = {"float": "the float", "float64": "the float", "float32": "the float", "str": "the string", "NoneType": ""}
    return f"{kinds.get(kind, f'a {kind},')} {text.removeprefix('np.float64(').removesuffix(')')}".strip()


def _launch(fault: Fault, context: Context) -> Any:
    launch = launch_of(fault, context)
    return launch.name if launch is not None else context.locate(fault)


def _grid(fault: Fault, context: Context) -> Spot | None:
    """The grid's expression: an argument of the launch, or of the grid spec that was being made."""
    launch: Launch | None = launch_of(fault, context)
    if launch is not None and (found := launch.argument("grid")) is not None:
        return found
    frames = context.frames(fault)
    call = call_at(context, frames, len(frames) - 1)
    if call is None or not isinstance(call.node, ast.Call):
        return None
    position = 1 if (call.syntax.called(call.node) or "").endswith("PrefetchScalarGridSpec") else 0
    node = call.syntax.argument(call.node, position, "grid")
    return call.at(node) if node is not None else None


def _element(spot: Spot, index: int, count: int) -> Spot | None:
    """The entry of the grid that is no integer, where the source shows the entries."""
    value = spot.syntax.value(spot.node)
    if not isinstance(value, ast.Tuple | ast.List):
        return spot if count == 1 and isinstance(value, ast.expr) and not isinstance(value, ast.Call) else None
    if len(value.elts) != count or any(isinstance(e, ast.Starred) for e in value.elts):
        return None
    element = value.elts[index]
    made = spot.syntax.value(element)
    return spot.at(made if isinstance(made, ast.BinOp | ast.Call | ast.Constant) else element)


def _fixes(element: Spot | None) -> Iterator[Fix | None]:
    if element is None:
        return
    for title, edits in integer_edits(element.syntax, element.node):
        editor = Editor(element.path, element.syntax)
        for target, text in edits:
            editor.replace(target, text)
        yield suggested(title, editor)
