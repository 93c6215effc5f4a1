"""
## What it does
Finds views of refs that Mosaic GPU cannot make: transposes and reshapes across tiles, bit casts, slices with a
stride, indices that are arrays, aliases of another memory.

## Why it is wrong
A ref in shared memory lies as its tiling and swizzle say. A view has to keep whole tiles together: the dimensions of
the tiles cannot be moved apart, folded together or swizzled anew. Elements are addressed by numbers; an array of
indices has no address.

## Example
```python
x_smem.at[indices]                 # an array of indices
plgpu.transpose_ref(x_smem, (1, 0, 2))   # moves a tiled dimension in front of an untiled one
```

## Use instead
The view on an allocation without tiles, or the operation on the values after a load.

## Fix safety
This rule offers no fix.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
The transforms of refs in `jax/_src/pallas/mosaic_gpu/core.py`; `_handle_transforms`, `_ndindexer_indices`,
`_reinterpret_cast`, `_extract_aliased_ref` and the rules for loads and stores in
`jax/_src/pallas/mosaic_gpu/lowering.py`; `jax/experimental/mosaic/gpu/dialect_lowering.py`; `memref_reshape` and
others in `jax/experimental/mosaic/gpu/utils.py`.
"""

from __future__ import annotations

import re

from pallas_lsp.model import Fault, Finding
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding
from pallas_lsp.rules.shared.gpu_operands import CORE, LOWERING, MGPU, PRIMITIVES, operands
from pallas_lsp.rules.shared.site_table import narrowed

SINCE = "0.1.0"
CONSTRUCTS = ("refs",)
SPECIFICITY = 15
_DIALECT = f"{MGPU}dialect_lowering.py"
_UTILS = f"{MGPU}utils.py"
_CONTEXT = f"{MGPU}launch_context.py"
_CORE = (
    "UntilingTransform.transform_type",
    "UntilingTransform.commute_transpose",
    "UntilingTransform.commute_ndindexer",
    "UntilingTransform.commute_reshape",
    "UnswizzleRef.commute_transpose",
    "UnswizzleRef.commute_reshape",
    "UnswizzleRef.commute_ndindexer",
    "batch_transform",
    "to_gpu_transform",
    "PeerMemRef.undo",
    "MulticastRef.undo",
    "ClusterRefTransform.undo",
    "ExtractAliasedRef.transform_type",
    "flatten_ref_union",
    "flatten_ref_union.<locals>.unflatten",
    "_ref_group_size",
    "RefUnion.__init__",
    "AbstractRefUnion._setitem",
    "CollapseLeadingBatchDimensionsTransform.transform_type",
    "ExpandLeadingBatchDimensionsTransform.transform_type",
    "ExpandLeadingBatchDimensionsTransform.commute_ndindexer",
    "transform_ref",
    "remote_ref",
    "multicast_ref",
    "cluster_ref",
    "ClusterRefTransform.__post_init__",
)
_LOWER = (
    "_handle_transforms",
    "_ndindexer_indices",
    "_reinterpret_cast",
    "_extract_aliased_ref",
    "_handle_dtype_bitcast",
    "_commute_transform",
    "merge_indexers",
    "_get_lowering_rule",
    "_get_lowering_rule_wg",
    "_swap_lowering_rule",
    "_swap_lowering_rule_wg",
    "_jaxpr_call_lowering_rule",
    "merge_indexers.<locals>._ensure_idx_fa",
    "_as_index",
)
_DIALECT_RULES = (
    "_memref_subview_op_lowering_rule",
    "_memref_cast_op_lowering_rule",
    "_memref_transpose_op_lowering_rule",
    "_memref_expand_shape_op_lowering_rule",
    "_check_collapse_shape",
    "_memref_collapse_shape_op_lowering_rule",
    "_memref_load_op_lowering_rule",
    "_memref_store_op_lowering_rule",
    "tile_strides",
    "tile_offset",
    "transform_type",
    "_vector_load_op_lowering_rule",
    "_vector_store_op_lowering_rule",
    "_gmem_slice_and_predicate",
)
_PRIMITIVE_RULES = (
    "_async_store_smem_lowering",
    "_async_load_tmem_lowering_rule",
    "_async_load_tmem_lowering_rule_wg",
    "_async_store_tmem_lowering_rule",
    "_async_store_tmem_lowering_rule_wg",
    "_async_copy_to_tmem_lowering_rule",
    "_async_copy_smem_to_tmem_lowering_rule",
    "_async_copy_smem_to_tmem_lowering_rule_wg",
    "_split_gmem_slice",
    "_tcgen05_mma_lowering",
    "_tcgen05_mma_lowering_wg.<locals>.handle_transforms_and_get_ref",
    "_wgmma_lowering",
    "_wgmma_warpgroup_lowering",
    "_print_layout_lowering",
    "_atomic_store_lowering_rule",
    "_atomic_store_lowering_rule_wg",
    "_multimem_store_lowering_rule",
    "_multimem_load_reduce_lowering_rule",
    "_multimem_load_reduce_lowering_rule_wg",
    "_get_barrier_base_index",
)
_SHAPES = (
    "memref_reshape",
    "memref_fold",
    "memref_unfold",
    "_reshape.<locals>.fold_until",
    "parse_indices",
    "tile_shape",
    "memref_ptr",
    "get_cluster_ref",
)
SITES = (
    *((CORE, name) for name in _CORE),
    *((LOWERING, name) for name in _LOWER),
    *((_DIALECT, name) for name in _DIALECT_RULES),
    *((PRIMITIVES, name) for name in _PRIMITIVE_RULES),
    *((_UTILS, name) for name in _SHAPES),
    (f"{MGPU}constraints.py", "reduce_collapse_shape_expression"),
    (f"{MGPU}constraints.py", "_is_valid_smem_layout_assignment"),
    (_CONTEXT, "TransposeTransform.__post_init__"),
    (_CONTEXT, "CollapseLeadingIndicesTransform.apply"),
    (_CONTEXT, "DropUnitDimsTransform.transform_shape"),
    (f"{MGPU}layout_inference.py", "_memref_subview_constraint_system"),
    (f"{MGPU}layout_inference.py", "_memref_expand_shape_op_equation_system"),
    (f"{MGPU}layout_inference.py", "_memref_collapse_shape_op_constraint_system"),
    (f"{MGPU}layout_inference.py", "_memref_load_store_op_constraint_system"),
    (f"{MGPU}layout_inference.py", "_with_transforms_constraint_system"),
)
# (what jax says, what we say; ``{view}`` is the expression, ``{tiles}`` the tiles of its allocation)
_TOLD = (
    (
        r"Arrays are not supported as indices|int_indexer_shape",
        "`{view}` is indexed by an array, but a ref is addressed by numbers and slices: loop over the indices and "
        "take one row at a time, `ref[indices_ref[i]]`.",
    ),
    (
        r"(?i)stride",
        "`{view}` takes every n-th element, which a view of this ref cannot: take whole slices, or reshape the array "
        "before the launch so that the elements to skip are a dimension of their own.",
    ),
    (
        r"Transpose cannot be moved|Can't transpose the swizzled|Cannot tile a transpose|ranspose",
        "`{view}` transposes a tiled ref across its tiles{tiles}: only the two dimensions of the tiles can be "
        "swapped, as operands of a product.",
    ),
    (
        r"(?i)reshape|fold|collaps|expand",
        "`{view}` reshapes a ref{tiles} in a way that breaks its tiles apart: reshape the array before the launch, "
        "or allocate the ref in that shape.",
    ),
    (
        r"Swizzled dim|Swizzled dimension|swizzle_elems|2 minormost",
        "`{view}` takes a part of the swizzled dimension{tiles}: it can only be taken as a whole, or in whole tiles.",
    ),
    (
        r"Empty tiling|non-contiguous refs",
        "`{view}` is a view whose rows do not lie together in memory{tiles}, which can be neither tiled nor swizzled: "
        "take whole rows of the ref.",
    ),
    (
        r"[Bb]itcast|reinterpret",
        "`{view}` reads memory as another element type: that is possible for contiguous, untiled memory of the same "
        "size only.",
    ),
    (
        r"same memory space|Only SMEM and TMEM",
        "The refs of a `plgpu.RefUnion` share one piece of memory: all of them have to be in SMEM, or all in TMEM.",
    ),
    (r"collective and some are not", "The refs of a `plgpu.RefUnion` in TMEM are all collective or none is."),
    (r"can't be assigned", "A `plgpu.RefUnion` is a choice of refs and has no value: store to one of its refs."),
    (
        r"aliasing only supported|base ref for aliases|byte-aligned",
        "The refs of a `plgpu.RefUnion` have to lie in whole bytes, and those in TMEM need the same number of rows.",
    ),
    (
        r"peer reference|multicast|Multicast|Peer device",
        "`{view}` is a ref of another device or of several, which this operation cannot work on: only copies can.",
    ),
    (r"ref must be a reference", "`{view}` is no ref, but a view is made of one: give it the ref, not its value."),
    (
        r"Tiling without swizzle",
        "`{view}` is tiled but not swizzled, which loads and stores do not support: add a `plgpu.SwizzleTransform` "
        "to the transforms of its allocation, or leave the tiling out.",
    ),
    (
        r"Minor tiling dimension",
        "`{view}` is tiled{tiles}, whose rows do not fit its swizzle: a row of a tile has exactly as many bytes as "
        "the swizzle says.",
    ),
    (r"2D tiling", "`{view}` is tiled{tiles}, but loads and stores support tiles of two dimensions only."),
    (r"scalar memrefs", "`{view}` is used as a single number, but is a ref of several elements: index it, `ref[0]`."),
    (
        r"Dynamic slice size|dynamic bounds|static sizes",
        "`{view}` has a size that only the running kernel knows: the size of a slice has to be a Python number; its "
        "start may be traced (`pl.ds(start, size)`).",
    ),
    (r"negative bounds", "`{view}` counts from the end, which is not supported here: write the positive index."),
    (r"out of bounds", "`{view}` lies outside of the ref."),
    (r"dims and idxs", "`plgpu.cluster_ref` takes one index for each of its dimensions of the cluster."),
    (
        r"batch_size|[Ss]licing batch|Unsupported (?:ndim|shape)",
        "`{view}` is a ref of a launch that `jax.vmap` maps, whose layout{tiles} has no room for the batch: make the "
        "batch an axis of the grid.",
    ),
    (r"Unsupported dtype", "A `plgpu.RefUnion` holds arrays of whole bytes; `{view}` is none."),
    (r"Cannot apply tiling|Cannot apply", "The tiles{tiles} of `{view}` do not divide its shape."),
    (
        r"(?i)until|unswizz|transform",
        "`{view}` is a view of a ref{tiles} that this operation does not support: give it the ref as it was "
        "allocated, or a plain slice of it.",
    ),
    (
        r"non-slice|Non-slice|squeeze|integer|index",
        "`{view}` indexes the ref{tiles} in a way that is not supported here: use slices of whole tiles.",
    ),
)


# What jax means where it says nothing.
_SILENT = {"commute_reshape": "reshape", "merge_indexers": "int_indexer_shape", "_ensure_idx_fa": "int_indexer_shape"}


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None or not _covers(site.file, site.function):
        return None
    place = context.locate(fault)
    view = short(context.source(place), 50)
    tiled = next((o for o in operands(fault).values() if o.allocation is not None and o.allocation.tiling), None)
    tiles = ""
    if tiled is not None and tiled.allocation is not None and tiled.allocation.tiling:
        tiles = f" (tiles of ({', '.join(map(str, tiled.allocation.tiling))}))"
    said = fault.message or _SILENT.get(site.function.rpartition(".")[2], "")
    for pattern, text in _TOLD:
        if re.search(pattern, said):
            related = tiled.related(context, "The ref is allocated here.") if tiled is not None else ()
            told = text.format(view=view, tiles=tiles)
            return finding(__name__, fault, context, narrowed(place, context), told, related)
    return None


def _covers(file: str, function: str) -> bool:
    """Python 3.10 knows only the last part of a function's name."""
    last = function.rpartition(".")[2]
    return any(file == f and last == name.rpartition(".")[2] for f, name in SITES)
