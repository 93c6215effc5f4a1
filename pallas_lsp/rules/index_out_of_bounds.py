"""
## What it does
Finds indices and slices of refs that reach past the end of their dimension: those that are known while tracing, and
those that follow from the grid's indices and from loops of known length.

## Why it is wrong
`pl.ds(start, size)` covers `start` to `start + size`; with a stride, every `stride`-th element from `start` on.
Unlike a Python slice it is not cut at the end: the elements past it do not exist. Nor does a ref count from its end: a
negative index reads or writes what lies before it in memory.

## Example
```python
x_ref[pl.ds(192, 128)]      # of a ref with 256 rows
buffers_ref[-1]             # of a ref with 2 buffers
```

## Use instead
```python
x_ref[pl.ds(128, 128)]
buffers_ref[1]
```

## Fix safety
The fixes are suggestions: the last place where the slice fits, or a slice that ends with the dimension.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`NDIndexer.__post_init__` in `jax/_src/state/indexing.py`, "Out of bound". Single numbers reach the lowering as they
are, where nothing checks them; the others are worked out for each step of the grid.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_operands import argument
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.silent import checked, narrow, silent_finding, spot_of
from pallas_lsp.rules.shared.user_line import Line, line_of
from pallas_lsp.rules.shared.wording import shape_text, type_text
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Syntax

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SITES = (("jax/_src/state/indexing.py", "NDIndexer.__post_init__"),)

_SLICE = re.compile(r"start=(-?\d+)(?:, size=(\d+), stride=(\d+))?, dim=(\d+)")
_INDEX = re.compile(r"idx=(-?\d+), dim=(\d+)")
_DS = frozenset({"jax.experimental.pallas.ds", "jax.experimental.pallas.dslice", "jax.experimental.pallas.Slice"})


def judge(fault: Fault, context: Context) -> Finding | None:
    if checked(fault, "constant-index"):
        return _constant(fault, context)
    if checked(fault, "dynamic-index-out-of-bounds"):
        return _dynamic(fault, context)
    if not raised_in(fault, "jax/_src/state/indexing.py", "__post_init__") or "Out of bound" not in fault.message:
        return None
    line = line_of(fault, context)
    slice_, index = _SLICE.search(fault.message), _INDEX.search(fault.message)
    found = slice_ or index
    if found is None:
        return None
    numbers = [int(g) for g in found.groups() if g is not None]
    dim = numbers[-1]
    element = _element(line, numbers, dim) if line is not None else None
    location = line.at(element) if line is not None and element is not None else context.locate(fault)
    source = f"`{short(context.source(location), 40)}`"
    if len(numbers) == 4:
        start, size, stride, _ = numbers
        last = start + (size - 1) * stride
        step = f" in steps of {stride}" if stride != 1 else ""
        message = f"{source} covers {start} to {last}{step}, but this dimension ends at {dim - 1}: its size is {dim}."
    else:
        message = f"{source} starts at {numbers[0]}, but this dimension ends at {dim - 1}: its size is {dim}."
    related = list(_related(line)) if line is not None else []
    fixes = list(_fixes(line, element, numbers)) if line is not None and element is not None else []
    return finding(__name__, fault, context, location, message, related, fixes)


def _constant(fault: Fault, context: Context) -> Finding:
    """A number that jax passes on as it is."""
    index, size, dimension = (int(fault.facts.get(key, 0)) for key in ("index", "size", "dimension"))
    spot = _subscript(fault, context, index)
    element = _of_dimension(spot, dimension) if spot is not None else None
    location = context.locate(fault)
    if spot is not None:
        location = spot.at(element).location if element is not None else spot.location
    text = f"The index is {index}, but this dimension has {size} element{'s' if size != 1 else ''}, 0 to {size - 1}"
    fixes: list[Fix | None] = []
    if index < 0:
        text += ": refs are not indexed from the end, this reads or writes what lies before it"
        if spot is not None and element is not None and -size <= index:
            editor = Editor(spot.path, spot.syntax)
            editor.replace(element, str(size + index))
            fixes.append(suggested(f"Write `{size + index}`, the same element from the start", editor))
    return silent_finding(__name__, fault, context, location, f"{text}.", (), fixes)


def _dynamic(fault: Fault, context: Context) -> Finding:
    """An index that the grid and loops of known length tell."""
    facts = fault.facts
    spot = spot_of(fault, context)
    location = narrow(spot) if spot is not None else context.locate(fault)
    element = _of_dimension(spot, int(facts["dimension"])) if spot is not None else None
    if spot is not None and element is not None:
        location = spot.at(element).location
    step, first, last, length = facts["step"], int(facts["first"]), int(facts["last"]), int(facts["length"])
    where = f"In step {shape_text(step)} of the grid this" if step else "This"
    text = (
        f"{where} is at {f'elements {first} to {last}' if last > first else f'element {first}'} of dimension "
        f"{facts['dimension']}, which has {length}, 0 to {length - 1}. Nothing checks it: it reads or writes what lies "
        "outside. Take fewer steps, limit the index, or mask what is outside."
    )
    return silent_finding(__name__, fault, context, location, text)


def _subscript(fault: Fault, context: Context, index: int) -> Spot | None:
    """The subscript whose index is at fault: the argument of a Pallas function, or the one with that number."""
    given = argument(context, fault, str(fault.facts.get("operand", "")))
    value = given.syntax.value(given.node) if given is not None else None
    if given is not None and isinstance(value, ast.Subscript):
        return given.at(value)
    spot = spot_of(fault, context)
    parts = [n for n in ast.walk(spot.node) if isinstance(n, ast.Subscript)] if spot is not None else []
    if spot is None or (len(parts) > 1 and not isinstance(spot.node, ast.Subscript)):
        parts = [n for n in parts if spot and any(_start(spot.syntax, i) == index for i in _elements(n))]
    return spot.at(parts[0]) if spot is not None and parts else None


def _of_dimension(spot: Spot, dimension: int) -> ast.expr | None:
    parts = _elements(spot.node)
    if any(isinstance(p, ast.Constant) and p.value is ... for p in parts) or dimension >= len(parts):
        return None
    return parts[dimension]


def _elements(node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, ast.Subscript):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _indices(line: Line) -> list[ast.expr]:
    node: ast.AST | None = line.node
    if isinstance(node, ast.Call):
        return [a for a in node.args[1:] if isinstance(a, ast.expr)]
    return _elements(node) if isinstance(node, ast.expr) else []


def _element(line: Line, numbers: Sequence[int], dim: int) -> ast.expr | None:
    """The index at fault: the only one, the one that names the numbers, or the one of a dimension of that size."""
    indices = [i for i in _indices(line) if not (isinstance(i, ast.Constant) and i.value is Ellipsis)]
    indices = [i for i in indices if not (isinstance(i, ast.Slice) and i.lower is None and i.upper is None)]
    if len(indices) == 1:
        return indices[0]
    literal = [i for i in indices if _start(line.syntax, i) == numbers[0]]
    if len(literal) == 1:
        return literal[0]
    fact = line.fact(_base(line.node))
    shape = fact.get("shape") if fact is not None else None
    every = _indices(line)
    if isinstance(shape, list) and len(every) <= len(shape):
        fitting = [i for i, size in zip(every, shape, strict=False) if size == dim and i in indices]
        if len(fitting) == 1:
            return fitting[0]
    return None


def _base(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node


def _start(syntax: Syntax, index: ast.expr) -> int | None:
    """The start of an index, where it is a number in the source."""
    node: ast.expr | None = index
    if isinstance(index, ast.Call) and syntax.dotted(index.func) in _DS:
        node = syntax.argument(index, 0, "start")
    elif isinstance(index, ast.Slice):
        node = index.lower
    value = syntax.value(node) if node is not None else None
    sign = 1
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value, sign = value.operand, -1
    return sign * value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None


def _related(line: Line) -> Iterator[Related]:
    base = _base(line.node)
    fact = line.fact(base)
    if fact is not None and fact.get("shape") is not None:
        yield Related(line.at(base), f"This ref is {type_text(fact)}.")


def _fixes(line: Line, element: ast.expr, numbers: Sequence[int]) -> Iterator[Fix | None]:
    syntax = line.syntax
    dim = numbers[-1]
    if len(numbers) == 2 and isinstance(element, ast.Call) and syntax.dotted(element.func) in _DS:
        size = syntax.argument(element, 1, "size")
        value = syntax.value(size) if size is not None else None
        if isinstance(value, ast.Constant) and isinstance(value.value, int):
            numbers = [numbers[0], value.value, 1, dim]
    if not isinstance(element, ast.Call) or syntax.dotted(element.func) not in _DS or len(numbers) != 4:
        if isinstance(element, ast.Constant) and isinstance(element.value, int):
            editor = Editor(line.path, syntax)
            editor.replace(element, str(dim - 1))
            yield suggested(f"Use the last index, {dim - 1}", editor)
        return
    start, length, stride, _ = numbers
    first, second = syntax.argument(element, 0, "start"), syntax.argument(element, 1, "size")
    fits = dim - 1 - (length - 1) * stride
    if first is not None and fits >= 0:
        editor = Editor(line.path, syntax)
        editor.replace(first, str(fits))
        yield suggested(f"Start at {fits}, the last place where it fits", editor)
    if second is not None and start < dim:
        fitting = (dim - 1 - start) // stride + 1
        editor = Editor(line.path, syntax)
        editor.replace(second, str(fitting))
        yield suggested(f"End with the dimension: {fitting} elements", editor)
