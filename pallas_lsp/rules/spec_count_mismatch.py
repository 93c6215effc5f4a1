"""
## What it does
Finds `in_specs` and `out_specs` whose structure is not that of the inputs and outputs: too few or too many specs, a
list where one spec is wanted, one spec where a list is wanted.

## Why it is wrong
`in_specs` has one BlockSpec for each argument of the call; with scalar prefetch, for each argument after the
prefetched ones. `out_specs` has the structure of `out_shape`: one spec for one output, a sequence for a sequence.

## Example
```python
pl.pallas_call(add_kernel, ..., in_specs=[block], out_specs=block)(x, y)
```

## Use instead
```python
pl.pallas_call(add_kernel, ..., in_specs=[block, block], out_specs=block)(x, y)
```

## Fix safety
Wrapping one spec in a list, taking one out of its list, and giving none for an argument that is `None`, is safe.
Repeating a spec or removing one is a suggestion.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
`get_grid_mapping` in `jax/_src/pallas/core.py`, "Pytree for `in_specs` and `inputs` do not match";
`GridSpec.__init__`, "`in_specs` must be a tuple or a list".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_lsp.model import Fault, Finding, Fix, Location, Related
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.places import Spot, follow, steps
from pallas_lsp.rules.shared.prefetching import prefetch_count
from pallas_lsp.rules.shared.wording import and_list, count_text
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("block specs and index maps",)
SITES = (
    ("jax/_src/pallas/core.py", "get_grid_mapping"),
    ("jax/_src/pallas/core.py", "GridSpec.__init__"),
)

_FILE = "jax/_src/pallas/core.py"
_BLOCK_SPEC = "jax.experimental.pallas.BlockSpec"


def judge(fault: Fault, context: Context) -> Finding | None:
    launch = launch_of(fault, context)
    if launch is None:
        return None
    if raised_in(fault, _FILE, "__init__"):
        return _bare(fault, context, launch)
    if not raised_in(fault, _FILE, "get_grid_mapping") or not fault.exception.endswith("ValueError"):
        return None
    for which in ("in_specs", "out_specs"):
        specs = launch.facts.get(which)
        if specs is None:
            continue
        wanted = _wanted(launch, which)
        given = [str(entry.get("path")) for entry in specs]
        if given != wanted:
            return _mismatch(fault, context, launch, which, specs, given, wanted)
    return None


def _wanted(launch: Launch, which: str) -> list[str]:
    """The paths of the specs that the operands ask for."""
    if which == "out_specs":
        return [str(path) for path in launch.facts.get("out_tree") or ()]
    skip = int(launch.facts.get("scalar_prefetch") or 0)
    found = []
    for path in launch.facts.get("in_tree") or ():
        first, *rest = steps(str(path))
        if isinstance(first, int) and first >= skip:
            tail = str(path).partition("]")[2] if rest else ""
            found.append(f"[{first - skip}]{tail}")
    return found


def _bare(fault: Fault, context: Context, launch: Launch) -> Finding | None:
    given = launch.facts.get("given_in_specs")
    if not isinstance(given, Mapping) or given.get("kind") in ("tuple", "list", "NoBlockSpec"):
        return None
    spot = launch.argument("in_specs")
    location = spot.location if spot is not None else launch.name
    message = (
        f"`in_specs` is a {given.get('kind')}, but it must be a list or tuple with one spec for each argument of the "
        "call."
    )
    fixes = []
    if spot is not None and given.get("kind") == "BlockSpec":
        fixes.append(_wrapped(spot, "Put the spec into a list"))
    return finding(__name__, fault, context, location, message, (), fixes)


def _wrapped(spot: Spot, title: str) -> Fix | None:
    editor = Editor(spot.path, spot.syntax)
    start, end = editor.whole(spot.node)
    editor.insert(start, "[")
    editor.insert(end, "]")
    return safe(title, editor)


def _mismatch(
    fault: Fault,
    context: Context,
    launch: Launch,
    which: str,
    specs: list[Mapping[str, Any]],
    given: list[str],
    wanted: list[str],
) -> Finding:
    spot = launch.argument(which)
    location = spot.location if spot is not None else launch.name
    opened = None
    if spot is not None:
        literal, _ = follow(context, launch.frames, spot, ())
        value = literal.syntax.value(literal.node)
        opened = literal.at(value) if isinstance(value, ast.List | ast.Tuple) else None
    what = "input" if which == "in_specs" else "output"
    prefetch = prefetch_count(launch, len(given), len(wanted)) if which == "in_specs" else None
    if prefetch is not None:
        return finding(__name__, fault, context, *prefetch)
    absent = _absent(launch, opened, given, wanted) if which == "in_specs" else None
    if absent is not None:
        return finding(__name__, fault, context, *absent)
    message = _message(launch, which, what, given, wanted)
    related = list(_related(launch, which, wanted))
    odd = _odd_element(opened, specs, given, wanted)
    if odd is not None:
        location = odd.location
        message = (
            f"`{short(context.source(location))}` is no BlockSpec. `{which}` has one BlockSpec for each {what}; "
            "`pl.BlockSpec()` stands for the whole array."
        )
        return finding(__name__, fault, context, location, message, related, _element_fixes(odd))
    if opened is not None and spot is not None and opened.path == spot.path:
        location = opened.location if not isinstance(spot.node, ast.Name) else location
    return finding(
        __name__, fault, context, location, message, related, _fixes(launch, which, spot, opened, given, wanted)
    )


def _absent(
    launch: Launch, opened: Spot | None, given: list[str], wanted: list[str]
) -> tuple[Location, str, list[Related], list[Fix | None]] | None:
    """Place, words and fix for an argument that is None, where a spec is given for it."""
    operands = launch.operands()[int(launch.facts.get("scalar_prefetch") or 0) :]
    specs = opened.node.elts if opened is not None and isinstance(opened.node, ast.List | ast.Tuple) else []
    if opened is None or len(specs) != len(operands) or len(given) != len(operands):
        return None
    index = next((i for i in range(len(operands)) if not any(path.startswith(f"[{i}]") for path in wanted)), None)
    if index is None:
        return None
    operand, spec = operands[index], opened.at(specs[index])
    name = short(operand.source, 30)
    message = (
        f"Argument {index} of the call, `{name}`, is `None` here, which counts as no input: its spec must be `None`, "
        "too."
    )
    fixes: list[Fix | None] = []
    same = operand.path == spec.path and spec.syntax.function(operand.node) is spec.syntax.function(spec.node)
    if same and isinstance(operand.node, ast.Name | ast.Constant):
        editor = Editor(spec.path, spec.syntax)
        text = "None" if isinstance(operand.node, ast.Constant) else f"None if {name} is None else {spec.source}"
        editor.replace(spec.node, text)
        fixes.append(safe(f"Give no spec for `{name}` where it is `None`", editor))
    return spec.location, message, [Related(operand.location, "This argument is `None`.")], fixes


def _message(launch: Launch, which: str, what: str, given: list[str], wanted: list[str]) -> str:
    skip = int(launch.facts.get("scalar_prefetch") or 0)
    has = f"`{which}` has {count_text(len(given), 'spec')}" if given != [""] else f"`{which}` is a single spec"
    if which == "in_specs":
        operands = [f"`{short(o.source, 24)}`" for o in launch.operands()[skip:]]
        names = f" ({and_list(operands)})" if len(operands) == len(wanted) and operands else ""
        after = f" after the {count_text(skip, 'scalar-prefetch argument')}" if skip else ""
        return (
            f"{has}, but the kernel is called with {count_text(len(wanted), 'input')}{after}{names}: one spec for each."
        )
    if wanted == [""]:
        return f"{has} in a sequence, but `{launch.output}` is one output, not a sequence: give it one spec."
    if given == [""]:
        sequence = f"a sequence of {count_text(len(wanted), 'output')}"
        return f"{has}, but `{launch.output}` is {sequence}: give a sequence of specs."
    if len(given) != len(wanted):
        return f"{has}, but `{launch.output}` has {count_text(len(wanted), 'output')}: one spec for each."
    specs, places = ", ".join(given), ", ".join(wanted)
    return f"`{which}` is not nested like the {what}s: its specs are at {specs}, the {what}s at {places}."


def _related(launch: Launch, which: str, wanted: list[str]) -> Iterator[Related]:
    if which == "out_specs":
        out = launch.argument(launch.output)
        if out is not None:
            yield Related(out.location, f"{count_text(len(wanted), 'output').capitalize()} here.")
        return
    run = launch.run()
    if run is not None and isinstance(run.node, ast.Call) and run.node.args:
        first, last = run.syntax.range(run.node.args[0]), run.syntax.range(run.node.args[-1])
        place = Location(run.path, type(first)(first.start, last.end))
        yield Related(place, "The kernel is called with these arguments.")


def _odd_element(
    opened: Spot | None, specs: list[Mapping[str, Any]], given: list[str], wanted: list[str]
) -> Spot | None:
    """An element of the sequence that is a plain tuple or None where a spec belongs."""
    if opened is None or not isinstance(opened.node, ast.List | ast.Tuple) or wanted == [""]:
        return None
    if len(opened.node.elts) != len(wanted):
        return None
    del specs, given
    for element in opened.node.elts:
        if isinstance(element, ast.Tuple) or (isinstance(element, ast.Constant) and element.value is None):
            return opened.at(element)
    return None


def _element_fixes(odd: Spot) -> Iterator[Fix | None]:
    editor = Editor(odd.path, odd.syntax)
    name = editor.spell(_BLOCK_SPEC, odd.node)
    if name is None:
        return
    node = odd.node
    if isinstance(node, ast.Tuple):
        inner = ", ".join(odd.syntax.source(e) for e in node.elts)
        is_shape = all(not isinstance(e, ast.Lambda | ast.Tuple) for e in node.elts)
        editor.replace(node, f"{name}({odd.source})" if is_shape else f"{name}({inner})")
        yield safe("Make a BlockSpec of it", editor)
    else:
        editor.replace(node, f"{name}()")
        yield suggested("Use the whole array as the block", editor)


def _fixes(
    launch: Launch, which: str, spot: Spot | None, opened: Spot | None, given: list[str], wanted: list[str]
) -> Iterator[Fix | None]:
    if spot is None:
        return
    if given == [""]:
        if len(wanted) == 1:
            yield _wrapped(spot, "Put the spec into a list")
        else:
            editor = Editor(spot.path, spot.syntax)
            source = spot.source
            editor.replace(spot.node, f"[{', '.join([source] * len(wanted))}]")
            yield suggested(f"Use this spec for all {len(wanted)} outputs", editor)
        return
    if isinstance(spot.node, ast.BinOp) and isinstance(spot.node.op, ast.Mult):
        yield _repeated(spot, spot.node, len(wanted))
    if opened is None or not isinstance(opened.node, ast.List | ast.Tuple):
        return
    elements = opened.node.elts
    if any(isinstance(e, ast.Starred) for e in elements) or len(elements) != len(given):
        return
    sources = [opened.syntax.source(e) for e in elements]
    if wanted == [""] and len(elements) == 1:
        editor = Editor(opened.path, opened.syntax)
        editor.replace(opened.node, sources[0])
        yield safe("Give the one spec itself", editor)
        return
    if len(elements) < len(wanted):
        more = len(wanted) - len(elements)
        same = _same_shape(launch, which, len(elements), len(wanted))
        if elements and same:
            yield _longer(opened, sources[same[0]], more, f"Use `{short(sources[same[0]], 40)}` for the other, too")
        name = Editor(opened.path, opened.syntax).spell(_BLOCK_SPEC, opened.node)
        if name is not None:
            yield _longer(opened, f"{name}()", more, "Use the whole array as the block of the other")
        return
    for index in _droppable(elements, len(elements) - len(wanted)):
        editor = Editor(opened.path, opened.syntax)
        editor.remove_item(elements[index], elements)
        yield suggested(f"Remove the spec {index}, `{short(sources[index], 40)}`", editor)


def _repeated(spot: Spot, product: ast.BinOp, wanted: int) -> Fix | None:
    """``[block] * 3`` with another number."""
    sides = (product.left, product.right)
    literal = next((s for s in sides if isinstance(s, ast.List | ast.Tuple) and len(s.elts) == 1), None)
    count = next((s for s in sides if s is not literal), None)
    if literal is None or count is None:
        return None
    editor = Editor(spot.path, spot.syntax)
    editor.replace(count, str(wanted))
    return suggested(f"Repeat the spec {wanted} times", editor)


def _same_shape(launch: Launch, which: str, have: int, want: int) -> list[int]:
    """The operands with a spec that have the shape of those without, the last one first."""
    key = "inputs" if which == "in_specs" else "outputs"
    types = list(launch.facts.get(key) or ())
    skip = int(launch.facts.get("scalar_prefetch") or 0) if which == "in_specs" else 0
    shapes = [entry.get("shape") for entry in types[skip:]]
    if len(shapes) != want:
        return []
    return [i for i in reversed(range(have)) if all(shapes[j] == shapes[i] for j in range(have, want))]


def _longer(opened: Spot, text: str, count: int, title: str) -> Fix | None:
    assert isinstance(opened.node, ast.List | ast.Tuple)
    editor = Editor(opened.path, opened.syntax)
    new = ", ".join([text] * count)
    if opened.node.elts:
        editor.insert(editor.whole(opened.node.elts[-1])[1], f", {new}")
    else:
        editor.replace(opened.node, f"[{new}]")
    return suggested(title, editor)


def _droppable(elements: list[ast.expr], count: int) -> list[int]:
    return [len(elements) - 1] if count == 1 else []
