"""
## What it does
Finds bodies of pipelines that take another number of parameters than the pipeline gives them.

## Why it is wrong
`plgpu.emit_pipeline` calls its body with the indices of the step first (one tuple), then one ref in SMEM for each
input spec and each output spec, and the carried value last where there is one (`init_carry=`).

## Example
```python
def step(x_smem, o_smem):
    o_smem[...] = x_smem[...] * 2

plgpu.emit_pipeline(step, grid=(4,), in_specs=[x_spec], out_specs=[o_spec])(x_gmem, o_gmem)
```

## Use instead
```python
def step(indices, x_smem, o_smem):
    o_smem[...] = x_smem[...] * 2
```

## Fix safety
Adding the parameter for the indices is safe, as nothing uses it. Other parameters are suggestions.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
The calls of the body in `emit_pipeline` and `emit_pipeline_warp_specialized`,
`jax/_src/pallas/mosaic_gpu/pipeline.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix, Related
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.shared.findings import finding, safe, suggested
from pallas_lsp.rules.shared.functions import add_parameters, fresh_names, head_location, positional, unused
from pallas_lsp.rules.shared.gpu_operands import PIPELINE
from pallas_lsp.rules.shared.gpu_pipelines import Pipeline, pipeline_of
from pallas_lsp.source.edits import Editor
from pallas_lsp.source.syntax import Function

SINCE = "0.1.0"
CONSTRUCTS = ("pipelines",)
SPECIFICITY = 59
SITES = (
    (PIPELINE, "emit_pipeline.<locals>.scoped_pipeline.<locals>.loop_body"),
    (
        PIPELINE,
        "emit_pipeline_warp_specialized.<locals>.scoped_pipeline.<locals>.compute_block.<locals>.compute_loop_body",
    ),
)
_GIVEN = re.compile(r"takes (?P<takes>\d+) positional arguments? but (?P<given>\d+) (?:was|were) given")
_MISSING = re.compile(r"missing (?P<count>\d+) required positional arguments?: (?P<names>.*)")


def judge(fault: Fault, context: Context) -> Finding | None:
    if not fault.exception.endswith("TypeError") or not passed_through(fault, PIPELINE):
        return None
    if fault.site is None or fault.site.file != PIPELINE or "positional argument" not in fault.message:
        return None
    pipeline = pipeline_of(fault, context)
    function = pipeline.body() if pipeline is not None else None
    if pipeline is None or function is None:
        return None
    counts = _counts(pipeline)
    wanted = _wanted(fault, function, counts)
    takes = len(positional(function))
    carry = ", the carried value" if pipeline.argument("init_carry") is not None else ""
    inputs, outputs = counts or (None, None)
    refs = f"{inputs} input ref{_s(inputs)} and {outputs} output ref{_s(outputs)}" if counts else "a ref for each spec"
    text = (
        f"The body of this pipeline takes {takes} parameter{_s(takes)}, but is called with {wanted}: the indices of "
        f"the step, {refs}{carry}."
    )
    place = head_location(pipeline.spot.path, pipeline.spot.syntax, function)
    related = [Related(pipeline.name, "The pipeline is made here.")]
    return finding(__name__, fault, context, place, text, related, _fixes(pipeline, function, takes, wanted))


def _s(count: int | None) -> str:
    return "" if count == 1 else "s"


def _counts(pipeline: Pipeline) -> tuple[int, int] | None:
    found = []
    for keyword in ("in_specs", "out_specs"):
        spot = pipeline.argument(keyword)
        value = spot.syntax.value(spot.node) if spot is not None else None
        if spot is None:
            found.append(0)
        elif isinstance(value, ast.List | ast.Tuple) and not any(isinstance(e, ast.Starred) for e in value.elts):
            found.append(len(value.elts))
        else:
            return None
    return found[0], found[1]


def _wanted(fault: Fault, function: Function, counts: tuple[int, int] | None) -> int:
    if (match := _GIVEN.search(fault.message)) is not None:
        return int(match["given"])
    match = _MISSING.search(fault.message)
    missing = int(match["count"]) if match is not None else 0
    return sum(counts) + 1 if counts is not None else len(positional(function)) - missing


def _fixes(pipeline: Pipeline, function: Function, takes: int, wanted: int) -> Iterator[Fix | None]:
    syntax = pipeline.spot.syntax
    parameters = positional(function)
    if wanted == takes + 1 and parameters:
        edits = Editor(pipeline.spot.path, syntax)
        name = fresh_names(function, ("_indices", "indices"), 1)[0]
        edits.insert(syntax.span(parameters[0])[0], f"{name}, ")
        yield safe(f"Add a first parameter for the indices of the step: `{name}`", edits)
    if wanted > takes and not isinstance(function, ast.Lambda):
        edit = add_parameters(syntax, function, fresh_names(function, ("o_smem", "extra"), wanted - takes))
        if edit is not None:
            edits = Editor(pipeline.spot.path, syntax)
            edits.change(*edit)
            yield suggested("Add the missing parameters at the end", edits)
    surplus = [p for p in parameters if unused(syntax, p)]
    if wanted < takes and len(surplus) >= takes - wanted:
        edits = Editor(pipeline.spot.path, syntax)
        for parameter in surplus[-(takes - wanted) :]:
            index = parameters.index(parameter)
            start, end = syntax.span(parameter)
            if index > 0:
                edits.delete(syntax.span(parameters[index - 1])[1], end)
            else:
                edits.delete(start, syntax.span(parameters[1])[0])
        yield suggested("Leave out the parameters that nothing uses", edits)
