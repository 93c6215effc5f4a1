"""
## What it does
Finds views of `plgpu.im2col_ref` that no copy can read: windows or paddings out of range, another rank than
(N, spatial..., C), an index that is not (rows, offsets..., channels), a destination that is too large.

## Why it is wrong
An im2col view is a list of windows, (windows, *window_shape, C). The copy engine fetches for one pixel of the window up
to 256 channels of up to 1024 windows at a time. The distances that it can step over are small numbers: the more spatial
dimensions there are, the smaller.

## Example
```python
windows = plgpu.im2col_ref(x, window_shape=(3, 3))       # x: (N, H, W, C)
plgpu.copy_gmem_to_smem(windows, smem, barrier)          # smem: (2048, 64)
```

## Use instead
```python
plgpu.copy_gmem_to_smem(windows.at[pl.ds(0, 128), 0, 1, pl.ds(0, 64)], smem, barrier)   # smem: (128, 64)
```

## Fix safety
This rule offers no fix.

## Applies to
Mosaic GPU on Hopper and later, with lane semantics; jax 0.12.

## Source
`Im2ColTransform` and `im2col_ref` in `jax/_src/pallas/mosaic_gpu/core.py`; `_extract_im2col_copy_params`,
`_copy_gmem_to_smem_abstract_eval` and `_copy_gmem_to_smem_lowering` in `jax/_src/pallas/mosaic_gpu/primitives.py`;
`LaunchContext.async_copy_im2col` in `jax/experimental/mosaic/gpu/launch_context.py`.
"""

from __future__ import annotations

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.base import rule_name
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared import site_table
from pallas_lsp.rules.shared.gpu_operands import CORE, MGPU, PRIMITIVES
from pallas_lsp.rules.shared.site_table import Details, Row

SINCE = "0.1.0"
CONSTRUCTS = ("copies",)
SPECIFICITY = 67
_CONTEXT = f"{MGPU}launch_context.py"
_COPY = ("LaunchContext.async_copy_im2col",)
_LOWER = ("_copy_gmem_to_smem_lowering", "_copy_gmem_to_smem_abstract_eval", "_extract_im2col_copy_params")
_MADE = ("Im2ColTransform.__post_init__",)
_SEEN = ("Im2ColTransform.transform_type",)
_WINDOW = ((None, "window_shape"),)
_PADDING = ((None, "padding"),)
_TARGET = ((1, "dst"),)


def _pairs(details: Details) -> str:
    return (
        f"The padding of an im2col view has a pair (before, after) for each spatial dimension: {details['wanted']} "
        f"pairs, not {details['got']}."
    )


_ROWS = (
    Row(
        CORE,
        _MADE,
        "An im2col view has 1, 2 or 3 spatial dimensions, and this window has {count}: {given}.",
        r"1, 2, or 3 spatial dimensions, got (?P<count>\d+) \((?P<given>.*)\)",
        at=_WINDOW,
    ),
    Row(CORE, _MADE, _pairs, r"Expected (?P<wanted>\d+) \(pad_lo, pad_hi\) pairs in padding, got (?P<got>\d+)"),
    Row(
        CORE,
        _MADE,
        "The window has the size {got} in spatial dimension {axis}, but the GPU can do 1 to {most} there.",
        r"window_shape\[(?P<axis>\d+)\] must be in \[1, (?P<most>\d+)\].*got (?P<got>-?\d+)",
        at=_WINDOW,
    ),
    Row(
        CORE,
        _MADE,
        "A padding adds zeros around the array, so it cannot be negative, as ({got}) is.",
        r"padding\[\d+\] must be non-negative, got \((?P<got>.*)\)",
        at=_PADDING,
    ),
    Row(
        CORE,
        _MADE,
        "The padding before spatial dimension {axis} is {got}, but the GPU can do at most {most} there.",
        r"padding\[(?P<axis>\d+)\]\[0\] must be at most (?P<most>\d+).*got (?P<got>-?\d+)",
        at=_PADDING,
    ),
    Row(
        CORE,
        _MADE,
        "The padding after spatial dimension {axis} is {got}: with this window the GPU can do {range} there.",
        r"padding\[(?P<axis>\d+)\]\[1\] must be in \[(?P<range>.*?)\].*got (?P<got>-?\d+)",
        at=_PADDING,
    ),
    Row(
        CORE,
        _SEEN,
        "A window of {spatial} dimensions is for an array (N, spatial..., C) of {rank} dimensions: batch first, "
        "channels last.",
        r"with (?P<spatial>\d+) spatial dims requires a rank-(?P<rank>\d+)",
        at=((0, "ref"),),
    ),
    Row(
        CORE,
        _SEEN,
        "The window is larger than spatial dimension {axis} with its padding: no window fits into {size}.",
        r"spatial dim (?P<axis>\d+) has non-positive output size \S+ for input size (?P<size>\d+)",
        at=_WINDOW,
    ),
    Row(
        CORE,
        ("im2col_ref",),
        "An im2col view is made of a whole array in GMEM, not of a slice or another view of one: make it first, and "
        "index it afterwards.",
        "untransformed reference",
        at=((0, "ref"),),
    ),
    Row(
        PRIMITIVES,
        _LOWER,
        "An im2col view can only be indexed, with rows, one offset for each spatial dimension, and channels: "
        "`view.at[pl.ds(0, 128), 0, 1, pl.ds(0, 64)]`.",
        "Only indexing is supported on im2col|must be indexed with a unit-stride row slice",
        at=((0, "src"),),
    ),
    Row(
        PRIMITIVES,
        _LOWER,
        "im2col copies are not there under warpgroup semantics: launch this kernel with "
        "`compiler_params=plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane)`.",
        "im2col copies are not supported under Warpgroup",
    ),
    Row(
        PRIMITIVES,
        _LOWER,
        "An im2col copy is for one block: leave `collective_axes` and `leader_tracked` out.",
        "im2col copies do not support collective_axes",
        at=((None, "collective_axes"), (None, "leader_tracked")),
    ),
    Row(
        PRIMITIVES,
        _LOWER,
        "An im2col copy goes to a 2-D ref in SMEM, (windows, channels), whose tiles span all of its columns.",
        "im2col copies only support untiled 2D SMEM",
        at=_TARGET,
    ),
    Row(PRIMITIVES, _LOWER, "im2col copies need a GPU of the Hopper generation or later.", "im2col copies are only"),
    Row(
        _CONTEXT,
        _COPY,
        "One im2col copy fetches at most 1024 windows, and this ref has room for {got}: copy in several steps.",
        r"between 1 and 1024 rows, got (?P<got>\d+)",
        at=_TARGET,
    ),
    Row(
        _CONTEXT,
        _COPY,
        "One im2col copy fetches at most 256 channels, and this ref has room for {got}: copy in several steps.",
        r"between 1 and 256 columns, got (?P<got>\d+)",
        at=_TARGET,
    ),
    Row(
        _CONTEXT,
        _COPY,
        "An im2col copy moves whole bytes: elements of {bits} bits cannot be copied so.",
        r"sub-byte types, got (?P<bits>\d+)-bit",
        at=((0, "src"),),
    ),
    Row(
        _CONTEXT,
        _COPY,
        "The windows start from {given} in spatial dimension {axis}, but the GPU can do {range} there: use a smaller "
        "window or padding.",
        r"spatial dim (?P<axis>\d+) must be in \[(?P<range>.*?)\] for rank \d+, but got \((?P<given>.*)\)",
    ),
    Row(
        _CONTEXT,
        _COPY,
        "No window starts within spatial dimension {axis}: window and padding leave the range {range}.",
        r"spatial dim (?P<axis>\d+) give an empty range (?P<range>\[.*?\))",
    ),
    Row(
        _CONTEXT,
        _COPY,
        "The offsets into the window are {got}, but the GPU can do 0 to {most} in {rank} dimensions.",
        r"filter_offsets must be in \[0, (?P<most>\d+)\] for rank (?P<rank>\d+), got (?P<got>.*)",
        at=((0, "src"),),
    ),
)
SITES = site_table.sites(_ROWS)


def judge(fault: Fault, context: Context) -> Finding | None:
    return site_table.judge(rule_name(__name__), _ROWS, fault, context)
