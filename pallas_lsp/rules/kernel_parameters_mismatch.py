"""
## What it does
Finds kernels that take another number of parameters than the launch gives them refs, and values that
`functools.partial` binds by position, so that they take the places of refs.

## Why it is wrong
A kernel is called with one ref for each argument of the call (scalar-prefetch arguments first), then one for each
output, then one for each entry of `scratch_shapes` (`scratch_types`), in this order. Aliasing an input to an output
does not take the output's ref away. Other parameters must be bound with `functools.partial`.

## Example
```python
def kernel(x_ref):
    x_ref[...] = jnp.maximum(x_ref[...], 0)

pl.pallas_call(kernel, out_shape=out, input_output_aliases={0: 0})(x)
```

## Use instead
```python
def kernel(x_ref, o_ref):
    o_ref[...] = jnp.maximum(x_ref[...], 0)
```

## Fix safety
The fixes are suggestions: a parameter for a ref that has none, no parameter for a ref that does not come, or a
scratch allocation for it, with the type of the output.

## Applies to
All backends; jax 0.10, 0.11 and 0.12.

## Source
Python's own TypeError where `_trace_kernel_to_jaxpr` in `jax/_src/pallas/pallas_call.py`, `_mpmd_map` in
`jax/_src/pallas/mpmd.py` or `kernel` in `jax/_src/pallas/mosaic_gpu/core.py` calls the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Location, Related
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.arity import Arity, arity_of, called_by, partial_names, partial_positional
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.functions import head_location, positional
from pallas_lsp.rules.shared.launch_refs import Refs, refs_of
from pallas_lsp.rules.shared.launches import Launch, launch_of
from pallas_lsp.rules.shared.parameter_fixes import bare_scratch, bound_keyword, fixes, keyword_only, unbound_method
from pallas_lsp.rules.shared.partial_binding import Bound, bound_first
from pallas_lsp.rules.shared.wording import and_list, count_text

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches",)

_CALLERS = {
    "jax/_src/pallas/pallas_call.py": ("_trace_kernel_to_jaxpr",),
    "jax/_src/pallas/mpmd.py": ("wrapper", "_mpmd_map"),
    "jax/_src/pallas/mosaic_gpu/core.py": ("kernel_body",),
    "jax/_src/pallas/core.py": ("wrapped",),
}


def judge(fault: Fault, context: Context) -> Finding | None:
    bound = bound_first(fault, context)
    if bound is not None:
        return _bound_first(fault, context, bound)
    arity = arity_of(fault)
    if arity is None or not called_by(fault, _CALLERS, skip=("run_scoped",)):
        return None
    launch = launch_of(fault, context)
    capture = context.capture(fault)
    if launch is None or capture is None or capture.body is None:
        return None
    if arity.function.rpartition(".")[2] != capture.body.name:
        return None
    refs = refs_of(launch)
    found = launch.body()
    taken = len(positional(found[2])) - _bound(launch) if found is not None else arity.takes
    location = launch.name
    if found is not None and refs is not None and taken is not None and taken < len(refs.names):
        location = head_location(*found)
    body = launch.argument("kernel", "body")
    unbound = unbound_method(launch, arity)
    if arity.keywords or unbound:
        location = body.location if body is not None else launch.name
        given = bound_keyword(launch, arity)
        location = Location(given[0].path, given[0].syntax.range(given[1])) if given is not None else location
    message = _message(launch, arity, refs, taken, capture.body.name)
    if unbound and body is not None:
        message += f" `{short(body.source, 40)}` is a method without its object: `self` gets the first ref."
    return finding(
        __name__,
        fault,
        context,
        location,
        message,
        _related(launch, found, location),
        fixes(launch, arity, refs, found, taken),
    )


def _bound_first(fault: Fault, context: Context, bound: Bound) -> Finding:
    """Values bound by position, which take the places of refs."""
    taken, meant = (and_list([f"`{name}`" for name in names]) for names in (bound.taken, bound.meant))
    message = (
        f"`functools.partial` gives {'this value' if len(bound.values) == 1 else 'these values'} to {taken}, the first "
        f"of the kernel, which the refs are meant for: bind {meant} by name."
    )
    where = bound.partial.at(bound.values[0]).location
    related = [Related(context.locate(fault), "Here it is used as a ref.")]
    return finding(__name__, fault, context, where, message, related, [bound.fix()])


def _bound(launch: Launch) -> int:
    """How many positional parameters ``functools.partial`` binds."""
    body, found = launch.argument("kernel", "body"), launch.body()
    if body is None or found is None:
        return 0
    names = partial_names(body)
    return partial_positional(body) + sum(1 for p in positional(found[2]) if p.arg in names)


def _message(launch: Launch, arity: Arity, refs: Refs | None, taken: int | None, name: str) -> str:
    what = f"`{name}`" if name != "<lambda>" else "The kernel"
    if arity.keywords:
        names = and_list([f"`{n}`" for n in arity.keywords])
        if arity.unexpected and bound_keyword(launch, arity) is not None:
            wanted = keyword_only(launch)
            takes = f": by keyword it takes {and_list([f'`{n}`' for n in wanted])}" if wanted else ""
            return f"{what} has no parameter {names}, which `functools.partial` gives it{takes}."
        if arity.unexpected:
            return f"{what} has no parameter {names}, but `{launch.scratch}` has an entry of that name."
        return (
            f"{what} needs {names}, which nothing gives: the launch passes refs by position only. "
            f"Bind it with `functools.partial({name}, {arity.keywords[0]}=...)`."
        )
    if refs is None:
        return f"{what} cannot be called with the refs of this launch: {arity.text}."
    takes = count_text(taken, "parameter") if taken is not None else "another number of parameters"
    message = f"{what} takes {takes}, but it gets {count_text(len(refs.names), 'ref')}: {refs.described()}."
    if taken is not None and taken > len(refs.names) and arity.missing:
        message += f" Nothing is left for {and_list([f'`{n}`' for n in arity.missing])}."
        if bare_scratch(launch) is not None:
            message += f" `{launch.scratch}` is passed over: it must be a list, tuple or dictionary."
    elif refs.aliased and taken is not None and taken < len(refs.names):
        message += " An alias does not take the output's ref away."
    return message


def _related(launch: Launch, found: object, location: Location) -> Iterator[Related]:
    if location != launch.name:
        yield Related(launch.name, "The kernel is launched here.")
        for argument, text in ((launch.output, "Outputs"), (launch.scratch, "Scratch")):
            spot = launch.argument(argument)
            if spot is not None:
                yield Related(spot.location, f"{text}: `{short(spot.source, 50)}`")
    elif isinstance(found, tuple):
        yield Related(head_location(*found), "The kernel is defined here.")
