"""
## What it does
Finds accumulators with a start value, `plgpu.ACC.init(x)`, that are given to anything but `pl.run_state`: to
`pl.run_scoped`, to `scratch_types` of `plgpu.kernel`, or to `get_ref_aval`.

## Why it is wrong
`pl.run_scoped` and `scratch_types` take types: they allocate, and what they allocate starts without a value of the
user's (an accumulator at zero). Only `pl.run_state` takes values and starts its refs at them. jax refuses the start
value while it traces.

## Example
```python
def accumulate(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref[...]

o_ref[...] = pl.run_scoped(accumulate, plgpu.ACC.init(bias))
```

## Use instead
`pl.run_state`, whose body returns nothing and which returns the final value:

```python
def accumulate(acc_ref):
    plgpu.wgmma(acc_ref, a_smem, b_smem)

o_ref[...] = pl.run_state(accumulate)(plgpu.ACC.init(bias))
```

or the same scope with the start value stored first:

```python
def accumulate(acc_ref):
    acc_ref[...] = bias
    plgpu.wgmma(acc_ref, a_smem, b_smem)
    return acc_ref[...]

o_ref[...] = pl.run_scoped(accumulate, plgpu.ACC(bias.shape, bias.dtype))
```

Before jax 0.11 a start value has to have a WGMMA layout, in both cases: `plgpu.layout_cast(x, plgpu.Layout.WGMMA)`.

## Fix safety
Both of these are safe. Leaving the start value out is safe where it is zeros, and else only suggested: the accumulator
then starts at zero.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`WGMMAAccumulatorRef.get_ref_aval` in `jax/_src/pallas/mosaic_gpu/core.py`, "Preinitialized WGMMAAccumulatorRef only
supported in pl.run_state".
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pallas_lsp.model import Fault, Finding, Fix, Frame, Related, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context, raised_in
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared import accumulators
from pallas_lsp.rules.shared.places import Spot, Steps, call_at, expression_at, follow, steps
from pallas_lsp.rules.shared.start_values import Filled, Known, stored_first, without_value
from pallas_lsp.rules.shared.to_run_state import nested, state
from pallas_lsp.rules.shared.uses import Use, parameter, scoped_argument, scoped_use
from pallas_lsp.source.syntax import Function, parameters

SINCE = "0.1.0"
CONSTRUCTS = ("accumulators",)

_CORE = "jax/_src/pallas/mosaic_gpu/core.py"
_SCRATCH = ("scratch_types", "scratch_shapes")


class _Where(NamedTuple):
    """What was given accumulators with a value: its call, and the accumulators as ``Filled``, the first at fault."""

    taker: str
    call: Spot | None
    filled: tuple[Filled, ...] = ()
    use: Use | None = None
    function: Function | None = None

    @property
    def spot(self) -> Spot | None:
        return self.filled[0][1] if self.filled else None


def judge(fault: Fault, context: Context) -> Finding | None:
    if not _is_this(fault):
        return None
    given = [leaf for leaf in fault.facts.get("ref_types", ()) if isinstance(leaf, Mapping)]
    where = _find(fault, context, given)
    place = where.spot.location if where.spot is not None else context.locate(fault)
    return Finding(
        rule=rule_name(__name__),
        location=place,
        message=_message(context.source(place), where.taker),
        stage=fault.stage,
        related=(*_related(context, where), *context.related(fault, place)),
        fixes=_fixes(context, where, given),
        kernel=context.kernel(fault),
        arguments=context.arguments(fault),
    )


def _is_this(fault: Fault) -> bool:
    if not fault.exception.endswith("ValueError") or not raised_in(fault, _CORE, "get_ref_aval"):
        return False
    assert fault.site is not None
    owner = fault.site.function.rpartition(".")[0]
    return owner.endswith(accumulators.KIND) if owner else accumulators.KIND in fault.message


def _find(fault: Fault, context: Context, given: Sequence[Known]) -> _Where:
    frames = context.frames(fault)
    call = call_at(context, frames, len(frames) - 1)
    leaves = [leaf for leaf in given if leaf.get("initialized") and leaf.get("kind") == accumulators.KIND]
    asked = call.node.func if call is not None and isinstance(call.node, ast.Call) else None
    if call is not None and isinstance(asked, ast.Attribute) and asked.attr == "get_ref_aval":
        return _Where("`get_ref_aval`", call, (({}, call.at(asked.value), None),))
    use = scoped_use(call) if call is not None else None
    if call is not None and use is not None:
        return _in_scope(context, frames, call, use, leaves)
    if _by_launch(fault):
        return _in_scratch(fault, context, frames, leaves)
    inside = _inside(call)
    found = [born for leaf in leaves if (born := accumulators.birth(context, leaf)) is not None]
    spots = [inside] if inside is not None else found
    return _Where("this call", call, tuple(({}, spot, None) for spot in spots))


def _by_launch(fault: Fault) -> bool:
    """Whether the launch itself asked for the ref, for its scratch types: it runs its body in a ``run_scoped``."""
    names = [site.function.rpartition(".")[2] for site in fault.calls]
    after = names.index("run_scoped") + 1 if "run_scoped" in names else len(names)
    return names[after : after + 1] == ["kernel_body"]


def _inside(call: Spot | None) -> Spot | None:
    """The one ``ACC.init(...)`` inside a call."""
    nodes = ast.walk(call.node) if call is not None else ()
    found = [n for n in nodes if call is not None and accumulators.initialiser(call.syntax, n) is not None]
    return call.at(found[0]) if call is not None and len(found) == 1 and isinstance(found[0], ast.expr) else None


def _in_scope(context: Context, frames: Sequence[Frame], call: Spot, use: Use, leaves: Sequence[Known]) -> _Where:
    filled: list[Filled] = []
    for leaf in leaves:
        path = steps(str(leaf.get("path", "")))
        value = scoped_argument(use, path[0]) if path else None
        received = None
        if len(path) == 1:
            received = parameter(use, path[0]) if isinstance(path[0], int) else parameter(use, 0, path[0])
        _add(
            filled, leaf, _at(context, frames, call.at(value) if value is not None else None, path[1:], leaf), received
        )
    if not filled:
        _add(filled, {}, _inside(call), None)
    return _Where("`pl.run_scoped`", call, tuple(filled), use, use.function)


def _add(filled: list[Filled], leaf: Known, spot: Spot | None, received: ast.arg | None) -> None:
    if spot is not None and all(spot.location != known.location for _, known, _ in filled):
        filled.append((leaf, spot, received))


def _at(context: Context, frames: Sequence[Frame], start: Spot | None, path: Steps, leaf: Known) -> Spot | None:
    """The expression of an accumulator in what was given; where that is not clear, the one that makes it."""
    if start is None:
        return accumulators.birth(context, leaf)
    spot, rest = follow(context, frames, start, path)
    return (accumulators.birth(context, leaf) or spot) if rest else spot


def _in_scratch(fault: Fault, context: Context, frames: Sequence[Frame], leaves: Sequence[Known]) -> _Where:
    """Accumulators among the scratch types of a launch: the launch may stand elsewhere than its call."""
    capture = context.capture(fault)
    launch = expression_at(context, capture.launch) if capture is not None and capture.launch is not None else None
    call = launch if launch is not None else call_at(context, frames, len(frames) - 1)
    if call is None or not isinstance(call.node, ast.Call):
        return _Where("`scratch_types`", call)
    given = call.syntax.arguments(call.node)
    value = next((given.keywords[name] for name in _SCRATCH if name in given.keywords), None)
    function = call.syntax.callee(given.positional[0]) if given.positional else None
    depth = next((i for i, f in enumerate(frames) if capture is not None and f == capture.launch), -1)
    start = Spot(call.path, call.syntax, value, depth) if value is not None else None
    filled: list[Filled] = []
    for leaf in leaves:
        path = steps(str(leaf.get("path", "")))
        _add(filled, leaf, _at(context, frames, start, path, leaf), _scratch_parameter(function, value, path))
    return _Where("`scratch_types`", call, tuple(filled), None, function)


def _scratch_parameter(
    function: Function | None, value: ast.expr | None, path: tuple[int | str, ...]
) -> ast.arg | None:
    """The parameter of a kernel's body that receives a scratch ref: they come last."""
    if function is None or len(path) != 1 or function.args.vararg is not None:
        return None
    if isinstance(path[0], str):
        return next((p for p in parameters(function) if p.arg == path[0]), None)
    if not isinstance(value, ast.List | ast.Tuple) or any(isinstance(e, ast.Starred) for e in value.elts):
        return None
    positional = [*function.args.posonlyargs, *function.args.args]
    index = len(positional) - len(value.elts) + path[0]
    return positional[index] if 0 <= index < len(positional) else None


def _message(source: str, taker: str) -> str:
    what = f"`{short(source)}`" if source else "This accumulator"
    if taker == "`get_ref_aval`":
        return f"{what} has a start value, and so has no ref type of its own: only `pl.run_state` takes start values."
    return (
        f"{what} has a start value, which only `pl.run_state` takes: {taker} allocates an accumulator that starts at "
        "zero. Give it to `pl.run_state`, or store the value into the ref first."
    )


def _related(context: Context, where: _Where) -> tuple[Related, ...]:
    found = []
    for leaf, spot, _ in where.filled[:1]:
        born = accumulators.birth(context, leaf)
        if born is not None and born.location != spot.location:
            found.append(Related(born.location, "The start value is given here."))
        if where.call is not None and spot.path == where.call.path and spot.node not in ast.walk(where.call.node):
            found.append(Related(where.call.location, f"It is given to {where.taker} here."))
    return tuple(found)


def _fixes(context: Context, where: _Where, given: Sequence[Known]) -> tuple[Fix, ...]:
    if not where.filled:
        return ()
    made: list[Filled] = []
    for leaf, spot, received in where.filled:
        born = accumulators.birth(context, leaf)
        here = born is None or accumulators.initialiser(spot.syntax, spot.node) is not None
        made.append((leaf, spot if born is None or here else born, received))
    fixes: list[Fix | None] = []
    if where.use is not None and given:
        fixes.append(state(context, where.use, given) or nested(context, where.use, given))
    if where.call is not None and all(spot.path == where.call.path for _, spot, _ in made):
        fixes.append(stored_first(context, made, where.function))
    dropped = without_value(made)
    fixes.insert(0 if dropped is not None and dropped.safety is Safety.SAFE else len(fixes), dropped)
    return tuple(fix for fix in fixes if fix is not None)
