"""
## What it does
Finds blocks and pipelines of TPU kernels that cannot be pipelined: blocks without a grid, more than two buffers,
element blocks mixed with others, `pltpu.emit_pipeline` with a grid, specs or axes that do not go together.

## Why it is wrong
A TPU launch copies the next block while the kernel works on the last one, with one or two buffers for each operand.
Without a grid there is only one step, so that a block that is not the whole array would leave the rest untouched.
`pltpu.emit_pipeline` does the same inside a kernel and has more options, such as three buffers.

## Example
```python
pl.pallas_call(
    kernel,
    in_specs=[pl.BlockSpec((8, 128), lambda: (0, 0))],  # of an array (64, 128), and no grid
    ...
)
```

## Use instead
```python
pl.pallas_call(
    kernel,
    grid=(8,),
    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
    ...
)
```

## Fix safety
Two buffers instead of more give the same results: safe. Other findings have no fix.

## Applies to
TPU kernels; jax 0.10, 0.11 and 0.12.

## Source
`lower_jaxpr_into_pipelined_module` in `jax/_src/pallas/mosaic/lowering.py`; `emit_pipeline`, `_partition_grid`,
`BufferedRef.create` and others in `jax/_src/pallas/mosaic/pipeline.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from pallas_lsp.model import Fault, Finding, Fix, Safety
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context, passed_through, raised_in
from pallas_lsp.rules.messages import clean
from pallas_lsp.rules.shared import block_sizes, compiler_params, keyword_edits, site_table
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("TPU", "pipelines")

_LOWERING = "jax/_src/pallas/mosaic/lowering.py"
_PIPELINE = "jax/_src/pallas/mosaic/pipeline.py"
_TREES = "jax/_src/tree_util.py"
_LAUNCH = ("lower_jaxpr_into_pipelined_module",)


def _block(details: Details) -> block_sizes.Block | None:
    refused = details.fault.facts.get("refused") or {}
    role, index = str(refused.get("role", "")), refused.get("index")
    return block_sizes.block_of(details.fault, details.context, role, index) if isinstance(index, int) else None


def _spec(*names: str) -> Callable[[Details], Spot | None]:
    """An argument of the BlockSpec at fault, else the spec, else the launch's name."""

    def place(details: Details) -> Spot | None:
        block = _block(details)
        if block is None:
            return compiler_params.launch_name(details)
        for name in names:
            found = block.spot.syntax.argument(block.call, 0 if name == "block_shape" else None, name)
            if found is not None:
                return block.spot.at(found)
        return block.spot

    return place


def _first_block(details: Details) -> Spot | None:
    """The first block that is smaller than its array, for a launch without a grid."""
    given = details.fault.facts.get("given") or {}
    for role in ("inputs", "outputs"):
        for index, spec in enumerate(given.get(role) or ()):
            block = block_sizes.block_of(details.fault, details.context, role, index)
            if block is not None and spec.get("block_shape"):
                return block.argument("block_shape") or block.spot
    return compiler_params.launch_name(details)


def _two_buffers(details: Details) -> Sequence[Fix]:
    block = _block(details)
    mode = next((k for k in block.call.keywords if k.arg == "pipeline_mode"), None) if block is not None else None
    node = block.spot.syntax.value(mode.value) if block is not None and mode is not None else None
    if block is None or not isinstance(node, ast.Call):
        return ()
    count = block.spot.syntax.argument(node, 0, "buffer_count")
    if count is None:
        return ()
    return keyword_edits.replace(block.spot.at(count), "2", "Use two buffers", Safety.SAFE)


def _made(details: Details) -> Spot | None:
    """The call of ``pltpu.emit_pipeline`` that made what is called, or the call itself."""
    spot = details.spot
    if spot is None or not isinstance(spot.node, ast.Call):
        return None
    inner = spot.syntax.value(spot.node.func)
    return spot.at(inner) if isinstance(inner, ast.Call) else spot


def _given(*names: str) -> Callable[[Details], Spot | None]:
    """An argument of ``pltpu.emit_pipeline``."""

    def place(details: Details) -> Spot | None:
        made = _made(details)
        if made is None or not isinstance(made.node, ast.Call):
            return None
        for name in names:
            found = made.syntax.argument(made.node, 0 if name == "body" else None, name)
            if found is not None:
                return made.at(found)
        return None

    return place


def _refs(details: Details) -> str:
    made, spot = _made(details), details.spot
    counts = []
    if made is not None and isinstance(made.node, ast.Call):
        for name in ("in_specs", "out_specs"):
            given = made.syntax.argument(made.node, None, name)
            value = made.syntax.value(given) if given is not None else None
            counts.append(len(value.elts) if isinstance(value, ast.Tuple | ast.List) else None)
    known = len(counts) == 2 and None not in counts
    wanted = f"{counts[0]} input and {counts[1]} output refs" if known else "one ref for each of its specs"
    got = f", but gets {len(spot.node.args)}" if spot is not None and isinstance(spot.node, ast.Call) else ""
    return f"The pipeline needs {wanted}{got}: call it with the refs of its inputs, then those of its outputs."


def _told(details: Details) -> str:
    said = clean(details.fault.message)
    return f"This pipeline is refused: {said[0].lower()}{said[1:]}" if said else "This pipeline is refused."


_ROWS = (
    Row(
        _LOWERING,
        _LAUNCH,
        "The launch has blocks that are smaller than their arrays, but no grid: with a single step the rest "
        "would never be reached. Give it `grid=`, and index maps of its indices.",
        "grid-free",
        at=_first_block,
    ),
    Row(
        _LOWERING,
        _LAUNCH,
        "A launch pipelines with one or two buffers, not {count}: use `pl.Buffered(2)`, or `pltpu.emit_pipeline` for "
        "more.",
        r"double \(2\) buffering are supported\. Got (?P<count>-?\d+)",
        at=_spec("pipeline_mode"),
        fixes=_two_buffers,
    ),
    Row(
        _LOWERING,
        _LAUNCH,
        "A launch has one number of buffers for each operand: separate numbers for input and output are there in "
        "`pltpu.emit_pipeline` only.",
        "Separate input/output",
        at=_spec("pipeline_mode"),
        fixes=_two_buffers,
    ),
    Row(
        _LOWERING,
        _LAUNCH,
        "A launch cannot look ahead for blocks (`use_lookahead`): use `pltpu.emit_pipeline` for that.",
        "Lookahead",
        at=_spec("pipeline_mode"),
    ),
    Row(
        _LOWERING,
        _LAUNCH,
        "`RevisitMode.ANY` needs a single buffer: use `pl.Buffered(1, ...)`.",
        "RevisitMode",
        at=_spec("pipeline_mode"),
    ),
    Row(
        _LOWERING,
        _LAUNCH,
        "A `pipeline_mode` is a `pl.Buffered(...)`.",
        "Unsupported pipeline mode",
        at=_spec("pipeline_mode"),
    ),
    Row(
        _LOWERING,
        _LAUNCH,
        "A block has `pl.Element` for all dimensions (apart from squeezed ones) or for none: this one mixes them.",
        "must be Elements",
        at=_spec("block_shape"),
    ),
    Row(
        _LOWERING,
        _LAUNCH,
        "`pl.{kind}` is no dimension that a launch can copy: use a number, `None` or `pl.Element`, or "
        "`pltpu.emit_pipeline`.",
        r"Unsupported block dimension type: <class '[\w.]*\.(?P<kind>\w+)'>",
        at=_spec("block_shape"),
    ),
    Row(
        _PIPELINE,
        ("emit_pipeline",),
        "The grid of a pipeline cannot have axes without steps, but is {grid}.",
        r"strictly positive, but got grid=(?P<grid>\(.*\))",
        at=_given("grid"),
    ),
    Row(
        _PIPELINE,
        ("emit_pipeline.<locals>.wrapped",),
        "The pipeline makes its buffers itself: leave `allocations` out.",
        "`allocations` are not",
        at=_given("allocations"),
    ),
    Row(
        _PIPELINE,
        ("emit_pipeline", "_emit_pipeline"),
        "`core_axis` and `core_axis_name` say the same: give only one of them.",
        "core_axis",
        at=_given("core_axis", "core_axis_name"),
    ),
    Row(
        _PIPELINE,
        ("_emit_pipeline",),
        "The grid of a pipeline is made of integers, in Python or traced, but has {types}.",
        r"Python integers and JAX Arrays: (?P<types>.*)",
        at=_given("grid"),
    ),
    Row(
        _PIPELINE,
        ("wrapped",),
        "The body of a pipeline returns a value, which goes nowhere: it stores to its output refs and returns nothing.",
        "must return None",
        at=_given("body"),
    ),
    Row(
        _PIPELINE,
        ("_partition_grid",),
        "The pipeline is divided among cores, but no axis of its grid may be divided: mark one as `pltpu.PARALLEL` in "
        "`dimension_semantics`.",
        "without parallel grid dimensions",
        at=_given("dimension_semantics", "core_axis"),
    ),
    Row(
        _PIPELINE,
        ("_partition_grid",),
        "`dimension_semantics` of a pipeline needs one entry for each axis of its grid.",
        "same length",
        at=_given("dimension_semantics"),
    ),
    Row(
        _PIPELINE,
        ("_partition_grid",),
        "The pipeline cannot be divided among cores: the number of cores, or more than one parallel axis of "
        "the grid, is known at run time only. Use numbers that are known when the kernel is traced.",
        "dynamic",
        at=_given("grid"),
    ),
    Row(
        _PIPELINE,
        ("_emit_pipeline_effectful_abstract_eval", "_pipeline_body_effectful_abstract_eval"),
        "The body of the pipeline stores to an input, whose buffer is never copied back: store to an "
        "output, or make the operand both (`pltpu.BufferedRef.input_output`).",
        "WriteEffect",
    ),
    *(
        Row(_PIPELINE, (name,), _told, exceptions=("ValueError", "NotImplementedError"))
        for name in (
            *("_create_blocked_slice", "_create_bounded_slice", "_make_block_slice", "_normalize_buffer_count"),
            *("_get_block_shape", "_get_dim_size", "create", "compute_slice", "current_ref", "initialize_slots"),
            *("make_input_bref", "make_output_bref", "sync_copy", "get_dma_slice", "__post_init__", "buffer_count"),
            *("next_fetch_indices", "advance_next_fetch", "_emit_pipeline_batching_rule", "_emit_pipeline_is_high"),
        )
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    if raised_in(fault, _TREES) and passed_through(fault, _PIPELINE):
        details = Details(fault, context)
        return site_table.make(rule_name(__name__), fault, context, details.location, _refs(details))
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
