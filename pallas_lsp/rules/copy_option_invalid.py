"""
## What it does
Finds copies between GMEM and SMEM with options that do not go together, or that the copy engine does not have: copies
for a cluster, gathers, predicates, prefetches, stores into the SMEM of another block.

## Why it is wrong
A copy with `collective_axes=` is made once for all blocks of the cluster along one axis. With
`leader_tracked=plgpu.CopyPartition.PARTITIONED(axis)` each of two blocks copies half of it; with `REPLICATED` all get
the whole. Rows are gathered with unsigned or 32-bit indices in a layout of their own, without predicate or cluster.

## Example
```python
plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier, leader_tracked=plgpu.CopyPartition.REPLICATED)
```

## Use instead
```python
plgpu.copy_gmem_to_smem(
    x_gmem, x_smem, barrier, collective_axes="cluster", leader_tracked=plgpu.CopyPartition.REPLICATED
)
```

## Fix safety
This rule offers no fix, but for an option that can only be left out (a suggestion).

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`copy_gmem_to_smem`, `_copy_gmem_to_smem_lowering`, `_extract_gmem_copy_params`, `_async_store_smem_lowering` and
others in `jax/_src/pallas/mosaic_gpu/primitives.py`; `LaunchContext` in
`jax/experimental/mosaic/gpu/launch_context.py`.
"""

from __future__ import annotations

import ast
import re

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_operands import MGPU, PRIMITIVES, call_spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("copies",)
SPECIFICITY = 25
_CONTEXT = f"{MGPU}launch_context.py"
_UTILS = f"{MGPU}utils.py"
SITES = (
    (PRIMITIVES, "copy_gmem_to_smem"),
    (PRIMITIVES, "_copy_gmem_to_smem_lowering"),
    (PRIMITIVES, "_copy_gmem_to_smem_abstract_eval"),
    (PRIMITIVES, "_copy_smem_to_gmem_lowering"),
    (PRIMITIVES, "_extract_gmem_copy_params"),
    (PRIMITIVES, "_extract_im2col_copy_params"),
    (PRIMITIVES, "_async_prefetch_lowering"),
    (PRIMITIVES, "_async_store_smem_abstract_eval"),
    (PRIMITIVES, "_async_store_smem_lowering"),
    (PRIMITIVES, "_wait_gmem_to_smem_abstract_eval"),
    (PRIMITIVES, "_wait_gmem_to_smem_lowering"),
    (PRIMITIVES, "_wait_smem_to_gmem_abstract_eval"),
    (PRIMITIVES, "wgmma_wait_effectful_abstract_eval"),
    (PRIMITIVES, "wgmma_accumulator_load"),
    (PRIMITIVES, "_async_copy_smem_to_tmem_abstract_eval"),
    (PRIMITIVES, "_collective_mma_predicate"),
    (_CONTEXT, "LaunchContext._prepare_async_copy"),
    (_CONTEXT, "LaunchContext._prepare_tma"),
    (_CONTEXT, "LaunchContext.async_copy"),
    (_CONTEXT, "LaunchContext.async_prefetch"),
    (_CONTEXT, "LaunchContext._get_tma_desc"),
    (_CONTEXT, "LaunchContext._get_tma_desc.<locals>.init_tma_desc"),
    (_CONTEXT, "LaunchContext._find_kernel_argument_index"),
    (_CONTEXT, "_find_kernel_argument_for_gmem_ref"),
    (_UTILS, "CollectiveBarrierRef.initialize"),
    (_UTILS, "BarrierRef.wait_parity"),
    (f"{MGPU}layout_inference.py", "_async_load_store_constraint_system"),
    (f"{MGPU}core.py", "_lower_as_gpu_kernel"),
)
# (what jax says, the keyword that is marked, what we say)
_TOLD = (
    (
        r"must be specified when `leader_tracked`",
        "leader_tracked",
        "`leader_tracked` says how the blocks of a cluster share this copy, but `collective_axes=` does not say "
        "which blocks.",
    ),
    (
        r"exactly one collective axis",
        "collective_axes",
        "A copy is shared along one axis of the cluster: `collective_axes` has one name here.",
    ),
    (
        r"[Pp]artitioned loads only|size 2\.|Leader-tracked loads only",
        "leader_tracked",
        "A copy can be partitioned, or tracked by a leader, among two blocks along the last axis of the cluster "
        "only, which has to have the size 2.",
    ),
    (
        r"partitioned over an axis of size (?P<n>\d+)",
        "leader_tracked",
        "This copy is partitioned: each of the {n} blocks copies its part, so the source has {n} times the size of "
        "the destination along that dimension.",
    ),
    (
        r"must divide the slice shape|divisible by the collective size",
        "collective_axes",
        "The blocks of the cluster share this copy, so the dimension that is shared has to be divisible by their "
        "number.",
    ),
    (
        r"[Oo]nly GMEM -> SMEM copies can be collective|Only collective loads",
        "collective_axes",
        "Only copies into SMEM can be shared by the blocks of a cluster.",
    ),
    (r"predicate", "predicate", "This copy cannot have a predicate: put it into `@pl.when(condition)` instead."),
    (
        r"[Gg]ather|scatter",
        "src",
        "Rows are gathered or scattered along the first dimension of a matrix, by integer indices of at most 32 bits "
        "in registers, without predicate, cluster or reduction, and with rows of a multiple of 128 bytes.",
    ),
    (
        r"device mesh|JAX device mesh",
        "",
        "This copies to or from other devices, but the kernel runs on no mesh of devices: launch it inside "
        "`jax.shard_map` under `jax.set_mesh`.",
    ),
    (
        r"[Pp]eer|remote",
        "",
        "The device that this ref lies on has to be known when the kernel starts: compute its number from "
        "`jax.lax.axis_index` of the mesh and constants.",
    ),
    (r"integer bytes", "", "This moves a part of a byte: the elements of the ref have to fill whole bytes."),
    (
        r"not a multiple of 128|Transfer",
        "",
        "This stores a number of bytes that the threads of a warpgroup cannot share evenly: a multiple of 128 bytes.",
    ),
    (r"tiled and swizzled", "", "`plgpu.async_store_smem` stores into refs with a tiling and a swizzle only."),
    (r"stored value has (?P<what>shape|dtype)", "", "The value that is stored has another {what} than the ref."),
    (r"Scalars are not supported", "", "`plgpu.async_store_smem` stores arrays, not single numbers."),
    (
        r"(?:n|wait_n) must be (?:a )?non-negative",
        "",
        "The number of operations that may still be running is 0 or more.",
    ),
    (
        r"pre-Hopper",
        "",
        "This is only available on GPUs before Hopper; on Hopper and Blackwell copies are waited for with their "
        "barrier.",
    ),
    (r"attribute 'group' failed", "", "The number of operations that may still be running is 0 or more."),
    (
        r"cp\.async|CP_ASYNC|TMA implementation",
        "",
        "The copies of GPUs before Hopper are simpler: no cluster, no predicate, no swizzle without tiles, two "
        "dimensions, at least 4 bytes for each thread and elements in multiples of 128.",
    ),
    (
        r"im2col",
        "src",
        "An im2col copy takes an `im2col_ref` of rank 3 to 5, indexed by start and filter offsets, into an untiled "
        "matrix in SMEM, without clusters and under lane semantics.",
    ),
    (
        r"contiguous",
        "",
        "The refs of a copy have to be contiguous in memory: a slice of a tiled ref that skips tiles, or a view that "
        "leaves gaps, cannot be copied at once. Copy the whole ref, or give each part an allocation of its own.",
    ),
    (r"5 dimensions", "", "A copy has at most five dimensions, tiles counted: drop or merge dimensions."),
    (
        r"SMEM reference to have the same shape|transformed slice",
        "",
        "The two sides of this copy differ in shape once tiles and single indices are counted.",
    ),
    (r"element type \(", "", "A copy from SMEM into TMEM does not convert: both refs need one element type."),
    (r"reference shape", "", "A copy from SMEM into TMEM needs the same shape on both sides."),
    (
        r"No cluster axes|minormost cluster axis",
        "collective_axis",
        "Two blocks that multiply together are neighbours along the last axis of the cluster: `collective_axis` has "
        "to name it, and the kernel needs a cluster.",
    ),
    (r"CTA-local barriers", "", "A block can wait on its own barriers only, not on those of another block."),
    (r"leader tracking", "", "A leader-tracked cluster barrier follows one axis of the cluster."),
    (r"kernel argument", "src", "A copy reads or writes arrays that the kernel is given as inputs or outputs."),
    (r"[Rr]eduction", "", "A copy cannot reduce here: only sums, minima and maxima of some element types can."),
)


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None:
        return None
    last = site.function.rpartition(".")[2]
    if not any(site.file == f and last == name.rpartition(".")[2] for f, name in SITES):
        return None
    if last == "_lower_as_gpu_kernel" and "wait_group" not in fault.message:
        return None
    for pattern, keyword, text in _TOLD:
        match = re.search(pattern, fault.message)
        if match is None:
            continue
        call = call_spot(context, fault)
        place = narrowed(context.locate(fault), context)
        fixes: list[Fix | None] = []
        if call is not None and isinstance(call.node, ast.Call):
            given = next((k for k in call.node.keywords if k.arg == keyword), None) if keyword else None
            if given is not None:
                place = narrowed(call.at(given.value).location, context)
                if keyword in ("leader_tracked", "predicate"):
                    edits = Editor(call.path, call.syntax)
                    edits.remove_argument(call.node, given)
                    fixes.append(suggested(f"Leave `{keyword}` out", edits))
        return finding(__name__, fault, context, place, text.format(**match.groupdict()), (), fixes)
    return None
