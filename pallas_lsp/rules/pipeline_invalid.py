"""
## What it does
Finds pipelines (`plgpu.emit_pipeline`, `plgpu.emit_pipeline_warp_specialized`) whose parts do not go together:
another number of specs than refs, steps that are released too late, options that a pipeline does not have.

## Why it is wrong
A pipeline is called with one ref in GMEM for each spec. It copies the block of step `i + 1` while the body works on
that of step `i`, in `max_concurrent_steps` buffers: a block that is kept for `delay_release` steps needs one buffer
more. Its grid has at least one step in each dimension.

## Example
```python
plgpu.emit_pipeline(step, grid=(4,), in_specs=[x_spec, y_spec], out_specs=[o_spec])(x_gmem, o_gmem)
plgpu.BlockSpec((64, 64), lambda i: (i, 0), delay_release=2)     # with max_concurrent_steps=2
```

## Use instead
```python
plgpu.emit_pipeline(step, grid=(4,), in_specs=[x_spec, y_spec], out_specs=[o_spec])(x_gmem, y_gmem, o_gmem)
max_concurrent_steps=3
```

## Fix safety
One more buffer is a suggestion: it takes more shared memory. Leaving options out is one too.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`emit_pipeline`, `emit_pipeline_warp_specialized`, `_downcast_spec` and `BufferedRef.compute_gmem_slice` in
`jax/_src/pallas/mosaic_gpu/pipeline.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context, passed_through
from pallas_lsp.rules.shared import pipeline_maps
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.functions import positional, unused
from pallas_lsp.rules.shared.gpu_mma import set_keyword
from pallas_lsp.rules.shared.gpu_operands import PIPELINE
from pallas_lsp.rules.shared.gpu_pipelines import Pipeline, pipeline_of
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("pipelines",)
_WS = "emit_pipeline_warp_specialized"
SITES = (
    (PIPELINE, "emit_pipeline"),
    (PIPELINE, "emit_pipeline.<locals>.pipeline"),
    (PIPELINE, "_downcast_spec"),
    (PIPELINE, "_get_block_size"),
    (PIPELINE, "BufferedRef.compute_gmem_slice"),
    (PIPELINE, "BufferedRef.compute_gmem_slice.<locals>._make_block_slice"),
    (PIPELINE, "_is_fully_in_bounds"),
    ("jax/_src/pallas/core.py", "_IndexMapFunc.__call__"),
    (PIPELINE, _WS),
    (PIPELINE, f"{_WS}.<locals>._get_scoped_allocs"),
    (PIPELINE, f"{_WS}.<locals>.pipeline"),
    (PIPELINE, f"{_WS}.<locals>.scoped_pipeline.<locals>.compute_block"),
    (PIPELINE, f"{_WS}.<locals>.scoped_pipeline.<locals>.compute_block.<locals>.pipeline_callback"),
    (PIPELINE, f"{_WS}.<locals>.scoped_pipeline.<locals>.memory_block"),
)
_ZIP = re.compile(r"safe_zip\(\).*All lengths: \((?P<specs>\d+), (?P<refs>\d+)\)")
_SHAPES = re.compile(r"Expected source shape to be \((?P<block>[^)]*)\), but got \((?P<part>[^)]*)\)")
_STEPS = re.compile(r"max_concurrent_steps=(?P<steps>\d+).*?delay_release(?:_levels)?=\[?(?P<delay>\d+)")
# What jax says; the keyword that is marked; what we say.
_TOLD = (
    ("strictly positive", "grid", "A pipeline needs at least one step in each dimension of its grid, {grid}."),
    (
        "pipeline_mode",
        "in_specs",
        "The specs of this pipeline have no `pipeline_mode`: how many steps are buffered is `max_concurrent_steps=` "
        "of the pipeline.",
    ),
    (
        "Output BlockSpecs cannot have collective",
        "out_specs",
        "The blocks of outputs cannot be shared by a cluster: leave `collective_axes` out of `out_specs`.",
    ),
    (
        "single collective axis",
        "in_specs",
        "A block can be shared along one axis of the cluster only: `collective_axes` has one name.",
    ),
    (
        "collective_axes",
        "in_specs",
        "`plgpu.emit_pipeline` cannot share blocks in a cluster: `collective_axes` is for "
        "`plgpu.emit_pipeline_warp_specialized`.",
    ),
    (
        "same delay_release",
        "in_specs",
        "All inputs of a warp-specialized pipeline are released after the same number of steps: give them one "
        "`delay_release`.",
    ),
    (
        "Memory thread must be the last",
        "num_compute_wgs",
        "The thread that copies has to be the last one of the kernel: the launch has to have one thread more than "
        "`num_compute_wgs`, {num_compute_wgs}.",
    ),
    (
        "dependency on the grid",
        "in_specs",
        "Every input block of a warp-specialized pipeline has to depend on the step: an index map that ignores the "
        "grid copies the same block each time. Copy such an input once, before the pipeline.",
    ),
    (
        "SMEM outputs are not supported",
        "out_specs",
        "A pipeline with several compute warpgroups has no outputs: leave `out_specs` out and store the results in "
        "the body.",
    ),
    ("more than once", "body", "The pipeline is run more than once in `compute_context`: it runs exactly once."),
    (
        "was not called",
        "compute_context",
        "`compute_context` does not run the pipeline: call the function that it gets.",
    ),
    (
        "Pipeline state should not",
        "pipeline_state",
        "`pipeline_state` is for a pipeline that gets its buffers: leave it out, or call the pipeline with "
        "`get_allocations`.",
    ),
    (
        "pipeline of pipelines is not supported with dynamic",
        "grid",
        "Pipelines that follow on each other need a grid of Python numbers.",
    ),
    (
        "divisible by max_concurrent_steps",
        "max_concurrent_steps",
        "Pipelines that follow on each other need a number of steps that `max_concurrent_steps`, "
        "{max_concurrent_steps}, divides.",
    ),
    (
        "not supported with delay_release",
        "in_specs",
        "Pipelines that follow on each other cannot delay the release of blocks: leave `delay_release` out.",
    ),
    (
        "pytree structure",
        "in_specs",
        "The specs of the pipeline and the refs that it is called with have to be nested in the same way.",
    ),
    ("Element dim with padding", "in_specs", "A block of `pl.Element` with padding cannot be copied by a pipeline."),
    ("Unsupported block", "in_specs", "The block of a pipeline's spec is made of integers, `None` and `pl.Element`."),
    (
        "pre-Hopper",
        "out_specs",
        "On GPUs before Hopper a pipeline has inputs only, and their blocks have to lie inside of their arrays.",
    ),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None or not passed_through(fault, PIPELINE):
        return None
    pipeline = pipeline_of(fault, context)
    if site.function.endswith("_IndexMapFunc.__call__") or site.function == "__call__":
        return pipeline_maps.arity(__name__, fault, context, pipeline)
    if site.function == "_copy_gmem_to_smem_abstract_eval" and pipeline is not None:
        return _rank(fault, context, pipeline)
    if site.file != PIPELINE or fault.exception.endswith("TypeError"):
        return None
    place = pipeline.name if pipeline is not None else narrowed(context.locate(fault), context)
    if (match := _ZIP.search(fault.message)) is not None:
        return _count(fault, context, pipeline, int(match["specs"]), int(match["refs"]))
    if (match := _STEPS.search(fault.message)) is not None:
        return _steps(fault, context, pipeline, int(match["steps"]), int(match["delay"]))
    if "safe_map()" in fault.message:
        return pipeline_maps.result_count(__name__, fault, context, pipeline, place)
    for words, keyword, told in _TOLD:
        if words in fault.message:
            spot = (_part(pipeline, words) or pipeline.argument(keyword)) if pipeline is not None else None
            location = narrowed(spot.location, context) if spot is not None else place
            values = {"grid": "", "num_compute_wgs": "", "max_concurrent_steps": ""}
            if spot is not None and keyword in values:
                values[keyword] = f"`{spot.source}`"
            text = told.format(**values).replace(", .", ".").replace(", , ", ", ").replace(",  divides", " divides")
            return finding(__name__, fault, context, location, text, (), _fixes(words, pipeline))
    return None


_OPTIONS = {
    "pipeline_mode": ("pipeline_mode",),
    "Output BlockSpecs cannot have collective": ("collective_axes", "out_specs"),
    "single collective axis": ("collective_axes",),
    "collective_axes": ("collective_axes",),
    "same delay_release": ("delay_release",),
    "not supported with delay_release": ("delay_release",),
}


def _part(pipeline: Pipeline, words: str) -> Spot | None:
    """The part of a spec that jax complains of."""
    if words in _OPTIONS:
        return pipeline.spec_option(*_OPTIONS[words])
    if words == "dependency on the grid":
        for spot, _ in pipeline.index_maps("in_specs"):
            if isinstance(spot.node, ast.Lambda) and all(unused(spot.syntax, p) for p in positional(spot.node)):
                return spot
    return None


def _rank(fault: Fault, context: Context, pipeline: Pipeline) -> Finding | None:
    match = _SHAPES.search(fault.message)
    if match is None:
        return None
    spot = _of_block(pipeline, match["block"]) or pipeline.argument("in_specs")
    text = (
        f"A block of this pipeline is ({match['block']}), but the part of its array that the index map takes is "
        f"({match['part']}): the block needs one entry for each dimension of the array."
    )
    place = narrowed(spot.location, context) if spot is not None else pipeline.name
    return finding(__name__, fault, context, place, text)


def _of_block(pipeline: Pipeline, block: str) -> Spot | None:
    """The shape of the block that is written with these numbers."""
    for spec in pipeline.specs():
        given = spec.syntax.arguments(spec.node).get(0, "block_shape") if isinstance(spec.node, ast.Call) else None
        if given is not None and spec.syntax.source(given).replace(" ", "").strip("()") == block.replace(" ", ""):
            return spec.at(given)
    return None


def _count(fault: Fault, context: Context, pipeline: Pipeline | None, specs: int, refs: int) -> Finding:
    place = narrowed(context.locate(fault), context)
    run = pipeline.run if pipeline is not None else None
    if run is not None and isinstance(run.node, ast.Call) and run.node.args:
        place = narrowed(run.location, context) if len(run.node.args) != 1 else run.at(run.node.args[0]).location
    text = (
        f"The pipeline has {specs} block specs (`in_specs` and `out_specs`), but is called with {refs} "
        f"ref{'s' if refs != 1 else ''}: it needs one ref in GMEM for each."
    )
    return finding(__name__, fault, context, place, text)


def _steps(fault: Fault, context: Context, pipeline: Pipeline | None, steps: int, delay: int) -> Finding:
    spot = pipeline.argument("max_concurrent_steps") if pipeline is not None else None
    place = (
        spot.location if spot is not None else pipeline.name if pipeline else narrowed(context.locate(fault), context)
    )
    text = (
        f"`max_concurrent_steps` is {steps}, but a block is kept for {delay} more step{'s' if delay != 1 else ''} "
        f"(`delay_release={delay}`): the pipeline needs at least {delay + 1} buffers."
    )
    fixes: list[Fix | None] = []
    if pipeline is not None:
        edits = Editor(pipeline.spot.path, pipeline.spot.syntax)
        set_keyword(edits, pipeline.call, "max_concurrent_steps", str(delay + 1))
        fixes.append(suggested(f"Buffer {delay + 1} steps: `max_concurrent_steps={delay + 1}`", edits))
    return finding(__name__, fault, context, place, text, (), fixes)


def _fixes(words: str, pipeline: Pipeline | None) -> Iterator[Fix | None]:
    if pipeline is None:
        return
    unwanted = {"pipeline_mode": "pipeline_mode", "collective_axes": "collective_axes"}.get(words)
    if words.startswith("Output BlockSpecs"):
        unwanted = "collective_axes"
    if unwanted is None:
        return
    edits = Editor(pipeline.spot.path, pipeline.spot.syntax)
    found = 0
    for spec in pipeline.specs(*(("out_specs",) if words.startswith("Output") else ())):
        if not isinstance(spec.node, ast.Call) or spec.path != pipeline.spot.path:
            continue
        unneeded = next((k for k in spec.node.keywords if k.arg == unwanted), None)
        if unneeded is not None:
            edits.remove_argument(spec.node, unneeded)
            found += 1
    if found:
        yield suggested(f"Leave `{unwanted}` out", edits)
