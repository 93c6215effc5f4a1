"""
## What it does
Finds index maps that take another number of arguments than the grid has axes.

## Why it is wrong
The index map of a BlockSpec is called with one index for each axis of the grid, then with one ref for each
scalar-prefetch argument. Python cannot call a function that takes more or fewer.

## Example
```python
pl.pallas_call(
    kernel,
    grid=(4, 2),
    in_specs=[pl.BlockSpec((128, 128), lambda i: (i, 0))],
    ...
)
```

## Use instead
One parameter for each grid axis, used or not:

```python
in_specs=[pl.BlockSpec((128, 128), lambda i, j: (i, j))],
```

With `pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, ...)` one more: `lambda i, j, idx_ref: (idx_ref[i], j)`.

## Fix safety
The fixes are suggestions: they add a parameter (and use it where the grid and the block fit a dimension) or remove one
that nothing uses.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`_IndexMapFunc.__call__` in `jax/_src/pallas/core.py`: Python's own TypeError.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import (
    add_parameters,
    fresh_names,
    head_location,
    positional,
    remove_parameter,
    result,
    unused,
)
from pallas_lsp.rules.shared.specs import Spec, spec_of
from pallas_lsp.rules.shared.wording import count_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function, Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)
SITES = (("jax/_src/pallas/core.py", "_IndexMapFunc.__call__"),)

_ARITY = re.compile(r"takes .*positional argument|missing \d+ required positional argument")
_GRID_NAMES = ("i", "j", "k", "l", "m", "n", "grid_index")
_PREFETCH_NAMES = ("scalar_ref", "scalar_ref_2")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not raised_in(fault, "jax/_src/pallas/core.py", "__call__") or not fault.exception.endswith("TypeError"):
        return None
    spec = spec_of(fault, context)
    if spec is None or not _ARITY.search(fault.message):
        return None
    found = spec.index_map()
    given = int(spec.facts.get("index_map_arguments") or 0)
    axes = int(spec.facts.get("grid") or 0)
    map_argument = spec.argument("index_map")
    location = map_argument.location if map_argument is not None else spec.place()
    if found is not None:
        location = head_location(*found)
    if found is not None and isinstance(found[2], ast.Lambda):
        location = type(location)(found[0], found[1].range(found[2]))
    taken = len(positional(found[2])) if found is not None else None
    return finding(
        __name__,
        fault,
        context,
        location,
        _message(spec, taken, given, axes),
        _related(spec, found),
        _fixes(spec, found, given, axes),
    )


def _message(spec: Spec, taken: int | None, given: int, axes: int) -> str:
    takes = f"takes {count_text(taken, 'argument')}" if taken is not None else "takes other arguments"
    grid = spec.launch.facts.get("grid") if spec.launch is not None else None
    shape = f" ({', '.join(map(str, grid))}{',' if len(grid) == 1 else ''})" if isinstance(grid, list) and grid else ""
    why = f"the grid{shape} has {count_text(axes, 'axis').replace('axiss', 'axes')}"
    if given > axes:
        why += (
            f" and there {'is' if given - axes == 1 else 'are'} {count_text(given - axes, 'scalar-prefetch argument')}"
        )
    return (
        f"This index map {takes}, but it is called with {given}: {why}. "
        "An index map gets one index for each grid axis"
        + (", then one ref for each scalar-prefetch argument." if given > axes else ".")
    )


def _related(spec: Spec, found: tuple[str, Syntax, Function] | None) -> Iterator[Related]:
    if spec.launch is None:
        return
    grid = spec.launch.argument("grid")
    if grid is not None:
        yield Related(grid.location, "The grid is given here.")
    if spec.spot is not None and found is not None and not _inside(spec, found[2]):
        yield Related(spec.spot.location, f"The index map belongs to this BlockSpec, of {spec.what}.")


def _inside(spec: Spec, function: Function) -> bool:
    return spec.spot is not None and any(node is function for node in ast.walk(spec.spot.node))


def _fixes(spec: Spec, found: tuple[str, Syntax, Function] | None, given: int, axes: int) -> Iterator[Fix | None]:
    if found is None:
        return
    path, syntax, function = found
    taken = positional(function)
    if function.args.vararg is not None or function.args.kwonlyargs:
        return
    if len(taken) < given:
        new_axes = max(0, axes - len(taken))
        names = fresh_names(function, _GRID_NAMES, new_axes)
        names += fresh_names(function, _PREFETCH_NAMES, given - max(axes, len(taken)))
        edit = add_parameters(syntax, function, names)
        if edit is None:
            return
        used = _used(spec, syntax, function, dict(zip(range(len(taken), axes), names, strict=False)))
        title = f"Add the {'parameters' if len(names) > 1 else 'parameter'} {', '.join(f'`{n}`' for n in names)}"
        if used:
            editor = Editor(path, syntax)
            editor.change(*edit)
            for node, name in used:
                editor.replace(node, name)
            yield suggested(f"{title} to the index map and use it where the grid fits the blocks", editor)
        editor = Editor(path, syntax)
        editor.change(*edit)
        yield suggested(f"{title} to the index map, unused", editor)
        return
    spare = [p for p in reversed(taken) if unused(syntax, p)][: len(taken) - given]
    if len(spare) == len(taken) - given:
        editor = Editor(path, syntax)
        if given == 0:
            editor.delete(syntax.span(taken[0])[0], syntax.span(taken[-1])[1])
        else:
            for parameter in spare:
                editor.delete(*remove_parameter(syntax, function, parameter))
        names = [p.arg for p in reversed(spare)]
        yield suggested(f"Remove {', '.join(f'`{n}`' for n in names)} from the index map's parameters", editor)


def _used(spec: Spec, syntax: Syntax, function: Function, new: dict[int, str]) -> list[tuple[ast.expr, str]]:
    """Constant zeros among the results that a new grid index should replace: as many blocks as the axis is long."""
    returned = result(syntax, function)
    grid = spec.launch.facts.get("grid") if spec.launch is not None else None
    block, array = spec.block_shape, spec.array_shape
    if not isinstance(grid, list) or block is None or not isinstance(returned, ast.Tuple):
        return []
    if not len(block) == len(array) == len(returned.elts):
        return []
    found: list[tuple[ast.expr, str]] = []
    for axis, name in new.items():
        for element, size, length in zip(returned.elts, block, array, strict=True):
            if not (isinstance(element, ast.Constant) and element.value == 0) or any(e is element for e, _ in found):
                continue
            blocks = math.ceil(length / (size if isinstance(size, int) and size else 1)) if _known(size, length) else 0
            if blocks > 1 and axis < len(grid) and grid[axis] == blocks:
                found.append((element, name))
                break
    return found


def _known(size: object, length: object) -> bool:
    return isinstance(length, int) and (size is None or isinstance(size, int))
