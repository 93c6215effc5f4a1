"""
## What it does
Finds launches and programs that Mosaic GPU cannot lower as a whole: dynamic grids, scalar prefetch, block specs
without a pipeline, loops that cannot be unrolled, programs on several devices, prints, semaphores, hand-written MLIR.

## Why it is wrong
A Mosaic GPU kernel has a fixed grid and takes whole arrays in GMEM; it copies blocks itself, or with
`plgpu.emit_pipeline`. Each finding says which part has no counterpart there.

## Example
```python
jax.lax.fori_loop(0, 5, body, init, unroll=2)     # 2 does not divide 5
pl.debug_print("{} {}", x, y)                     # two arrays
```

## Use instead
```python
jax.lax.fori_loop(0, 5, body, init, unroll=5)
pl.debug_print("{}", x)
```

## Fix safety
The fixes leave out what cannot be done and are suggestions.

## Applies to
Mosaic GPU; jax 0.10, 0.11 and 0.12.

## Source
`jax/_src/pallas/mosaic_gpu/lowering.py`, `pallas_call_registration.py` and `core.py`;
`jax/experimental/mosaic/gpu/core.py`; `jax/_src/pallas/mosaic_gpu/primitives.py` and `helpers.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lsp.model import Fault, Finding, Fix
from pallas_lsp.rules.context import Context
from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.findings import finding, suggested
from pallas_lsp.rules.shared.gpu_operands import CORE, LOWERING, MGPU, PRIMITIVES
from pallas_lsp.rules.shared.places import Spot
from pallas_lsp.rules.shared.site_table import narrowed
from pallas_lsp.source.edits import Editor

SINCE = "0.1.0"
CONSTRUCTS = ("kernel bodies and launches", "primitives")
SPECIFICITY = 12
_REGISTRATION = "jax/_src/pallas/mosaic_gpu/pallas_call_registration.py"
_HELPERS = "jax/_src/pallas/mosaic_gpu/helpers.py"
_MCORE = f"{MGPU}core.py"
_UTILS = f"{MGPU}utils.py"
_LOWER = (
    "_check_block_mappings",
    "lower_pipelined_jaxpr_to_module",
    "lower_unpipelined_jaxpr_to_module",
    "lower_jaxpr_to_module",
    "lower_jaxpr_to_module.<locals>.body",
    "_eval_index_map",
    "_multiple_of_wg_lowering_rule",
    "_mpmd_map_resource_estimator",
    "_run_scoped_resource_estimator",
    "_lower_jaxpr_to_for_loop",
    "_scan_lowering_rule",
    "_cond_lowering_rule",
    "_reshape_lowering_rule",
    "_reshape_lowering_rule_wg",
    "_debug_print_lowering_rule",
    "_run_scoped_lowering_rule",
    "_get_global_resource_estimator",
    "_get_global_lowering_rule",
    "_core_map_lowering_rule",
    "_mpmd_map_lowering_rule",
    "_device_id_to_logical.<locals>.jax_fn",
    "_check_lowering_rule",
    "_select_n_lowering_rule",
    "_semaphore_read_lowering_rule",
    "_i32_constant",
    "_i64_constant",
    "_run_state_lowering_rule",
    "_axis_index_rule",
    "_relayout_lowering_lane",
)
_PRIMS = (
    "_semaphore_signal_lowering_rule",
    "_semaphore_wait_lowering_rule",
    "_semaphore_signal_multicast_lowering",
    "_semaphore_signal_parallel_abstract_eval",
    "_multimem_store_abstract_eval",
    "_multimem_store_lowering_rule",
    "_multimem_load_reduce_lowering_rule",
    "_multimem_load_reduce_lowering_rule_wg",
    "try_cluster_cancel_lowering",
    "query_cluster_cancel_lowering",
    "_atomic_store_abstract_eval",
    "_atomic_store_discharge_rule",
    "inline_mgpu",
    "inline_mgpu.<locals>.inner.<locals>.wrapper",
    "_inline_mgpu_discharge",
    "_type_check_mgpu_lane_semantics",
    "_inline_mgpu_flat_transformed_args",
    "_inline_mgpu_lowering_rule",
    "_populate_custom_primitive_op_block",
    "_custom_primitive_in_specs",
    "_custom_primitive_op_results",
    "_reduce",
    "_reduce_abstract_eval",
    "_mma_abstract_eval",
    "_check_layout_mode",
    "_async_load_tmem_abstract_eval",
)
_CORE_FUNCTIONS = (
    "CompilerParams.__post_init__",
    "kernel",
    "_gpu_mesh_discharge_rule",
    "BlockSpec.to_block_mapping",
    "_check_no_semaphore_outputs",
    "kernel.<locals>.wrapper",
    "TMEMLayout.to_mgpu",
    "SomeLayout.to_mgpu",
    "Barrier.get_array_aval",
    "ClusterBarrier.get_array_aval",
    "Mesh.check_is_compatible_with",
)
SITES = (
    *((LOWERING, name) for name in _LOWER),
    *((PRIMITIVES, name) for name in _PRIMS),
    *((CORE, name) for name in _CORE_FUNCTIONS),
    (_REGISTRATION, "pallas_call_lowering"),
    (_REGISTRATION, "mpmd_map_mgpu_lowering_rule"),
    (_HELPERS, "nd_loop"),
    (_HELPERS, "format_tcgen05_sparse_metadata"),
    (_HELPERS, "find_swizzle"),
    (_MCORE, "_mosaic_gpu_lowering_rule"),
    (_MCORE, "_launch"),
    (_MCORE, "_infer_arch"),
    (_MCORE, "_smem_tree_size"),
    (_UTILS, "_infer_arch"),
    (_UTILS, "debug_print"),
    (_UTILS, "_debug_scalar_ty_format"),
    (f"{MGPU}layout_inference.py", "dynamic_gcd"),
    (f"{MGPU}fragmented_array.py", "FragmentedArray._store_register_atomic"),
    (f"{MGPU}mma.py", "mma"),
    (f"{MGPU}mma.py", "MMALayouts.for_shape"),
)
_TOLD = (
    (
        r"[Dd]ynamic grid bounds",
        "The grid of a Mosaic GPU kernel is made of Python numbers: a traced size is not possible.",
    ),
    (r"Scalar prefetch", "Mosaic GPU has no scalar prefetch: read the numbers from a ref in GMEM, `indices_ref[i]`."),
    (
        r"blocks in GMEM",
        "Without a pipeline a ref in GMEM is always the whole array: leave the block shape and the index map out of "
        "the spec, and take the block in the body (`x_ref.at[pl.ds(i * n, n)]`) or with `plgpu.emit_pipeline`.",
    ),
    (r"Only Blocked indexing", "Mosaic GPU's block specs count in blocks: `pl.Element` is not supported here."),
    (r"Pipeline mode", "Mosaic GPU's block specs have no `pipeline_mode`: use `plgpu.emit_pipeline`."),
    (r"dimension_semantics", "`dimension_semantics` is only for kernels with block specs; leave it out here."),
    (r"unroll.* must divide", "`{source}` is unrolled by a number that does not divide its number of steps, {match}."),
    (r"must be an integer when", "A loop whose number of steps is traced cannot be unrolled: leave `unroll` out."),
    (r"Ordered debug_print", "A kernel cannot print in order: leave `ordered=True` out."),
    (
        r"positional arguments are supported by debug_print",
        'A kernel\'s print takes its values by position: `pl.debug_print("{{}}", x)`.',
    ),
    (
        r"only supports printing of scalar",
        "`{source}` prints several values of which one is an array: print single numbers, or one array alone.",
    ),
    (r"2D\+ vectors|Can't print", "`{source}` prints a value of a type that a kernel cannot print."),
    (r"platform_dependent", "A kernel runs on the GPU alone: `lax.platform_dependent` cannot choose in it."),
    (r"[Bb]uffer poisoning", "Buffers cannot be poisoned on GPUs."),
    (
        r"get_global only supports semaphores|Unsupported memory space|To allocate global semaphores",
        "`{source}` allocates memory that a kernel cannot allocate: only SMEM, TMEM, barriers, accumulators and "
        "semaphores are allocated inside. Memory in GMEM is an input or output of the kernel.",
    ),
    (
        r"Can't convert to ref",
        "`{source}` allocates something that is no ref: use `plgpu.SMEM(shape, dtype)` and the like.",
    ),
    (
        r"Unsupported mesh|[Mm]eshes are not|mesh/function|is not supported by the Mosaic GPU backend",
        "This kernel is written for a mesh that is none of Mosaic GPU's: launch it with `plgpu.kernel`, or "
        "`pl.core_map` on a `plgpu.Mesh` or `plgpu.WarpMesh`.",
    ),
    (r"core_index is specified", "GPUs have no cores to signal: leave `core_index` out."),
    (r"GPU-local semaphore", 'A semaphore of another device is signalled through system memory: `memory_scope="sys"`.'),
    (
        r"semaphores?.*outputs|cannot return semaphores",
        "Semaphores cannot be outputs of a kernel: allocate them in the scratch types, or before the kernels that "
        "share them.",
    ),
    (r"Cannot pass semaphores", "Semaphores are given to a kernel as refs: wrap them in `jax.new_ref`."),
    (r"int32 values", "Semaphores count in int32, and devices are numbered in int32."),
    (
        r"Unhandled transforms|emaphore",
        "`{source}` uses a semaphore in a way that is not supported: index it to one semaphore.",
    ),
    (
        r"device mesh|mesh context|single-device meshes|ShardingContext|device ordering|sharding context",
        "This kernel talks to other devices or runs on several: launch it inside `jax.shard_map` over all axes of "
        "the mesh, with devices in order.",
    ),
    (r"collective_axes", "The axes that are reduced or signalled have to be all axes of the mesh of devices."),
    (r"closed? over values|close over", "A kernel cannot use arrays from outside: pass them as inputs."),
    (
        r"Non-debug checks",
        "Only debug checks (`pl.debug_check`) work in a kernel; make others with `jax.experimental.checkify`.",
    ),
    (r"profile_space and profile_dir", "`profile_space` and `profile_dir` come together: give both or neither."),
    (r"Unsupported trace scope", "`profile_trace_scope` is none of the scopes that can be traced."),
    (r"Cannot specify both (?P<old>\w+) and (?P<new>\w+)", "`{old}` is the old name of `{new}`: give one of them."),
    (
        r"collective_axes is not supported in pallas_call",
        "Blocks of a cluster can be shared in `plgpu.kernel` with `plgpu.emit_pipeline_warp_specialized` only: leave "
        "`collective_axes` out.",
    ),
    (r"not arrays", "A barrier is no array: it is allocated in `scratch_types` or with `pl.run_scoped`."),
    (
        r"must have same length|does not divide grid",
        "The tiling of `plgpu.nd_loop` has one entry for each dimension of its grid, which divides it.",
    ),
    (r"out of range for i(?:32|64)", "`{source}` uses a number that does not fit a 32-bit integer."),
    (r"ROCm", "Mosaic GPU is for NVIDIA's GPUs; this is one of AMD's."),
    (r"Grid dimension (?P<d>\S+) must be divisible", "The grid has to be divisible by the cluster in each dimension."),
    (
        r"CTA barriers requested",
        "This kernel has too many threads: the GPU has 16 barriers for a block, and each thread needs one.",
    ),
    (
        r"Misaligned barrier",
        "Barriers lie at multiples of 8 bytes: an allocation before them has an odd size. Give it a multiple of 8 "
        "bytes.",
    ),
    (r"[Mm]etadata", "The metadata of a sparse product are uint2 values of shape (m, k // 4, 2)."),
    (r"No valid out swizzle", "The last dimension is no multiple of 16 bytes, so no swizzle fits it."),
    (r"Cannot nest", "A kernel on the warps of a block cannot start another one inside: `{source}` is in one already."),
    (r"relayout_p", "`{source}` is a cast that lane semantics does not have: use `plgpu.layout_cast`."),
    (r"Implicit broadcast", "`{source}` chooses with a condition of another shape: broadcast it first."),
    (r"Unimplemented transforms", "`{source}` takes a whole ref, not a slice or another view of one."),
    (
        r"inline_mgpu|return type|Expected a FragmentedArray|Mismatched type|type mismatch|mismatch: expected|"
        r"Unexpected type|"
        r"Unexpected layout|Output layout|Expected 0D|WGSplat|Transform mismatch|Not all transforms|"
        r"^Expected .* but got",
        "The values that a `plgpu.inline_mgpu` block gets or returns are not those that `arg_types` and "
        "`return_type` say: same tree, shape, element type and layout.",
    ),
    (r"128 bits", "The response of a cluster cancel is a ref of 128 bits in SMEM."),
    (
        r"Invalid (?:shape|dtype) for `swap`|dtype .* does not match ref|shape .* does not match ref",
        "`{source}` stores a value whose shape or element type is not that of the ref.",
    ),
    (r"atomic", "`{source}` is an atomic operation that the GPU does not have for this element type and memory."),
    (
        r"keepdims=True",
        "This reduction cannot keep its dimension: leave `keepdims=True` out and spread the result with "
        "`jax.lax.broadcast_in_dim`.",
    ),
    (r"accumulator_ilp", "`accumulator_ilp` is a positive number."),
    (
        r"Incompatible shapes for matrix|[Oo]perand dtypes must match|[Aa]ccumulators? (?:was|supported)|operand type|"
        r"m_warps|"
        r"MMALayouts|[MNK] mismatch|Dtype mismatch",
        "The operands of `plgpu.mma` do not fit together: (m, k) by (k, n), one element type, an accumulator of "
        "float32 (int32 for integers, float64 for float64).",
    ),
    (r"for reduction: |Unsupported dtype for reduction", "A load of TMEM can reduce float32, int32 and uint32 only."),
    (r"dimensions|sharding", "A reshape in a kernel takes a shape alone, no `dimensions` and no `sharding`."),
    (r"2 cases", "A choice in a kernel is between two values: use `jnp.where`."),
    (r"scalar inputs", "`pl.multiple_of` takes a single number."),
    (r"Layout mode", "The layout mode of a kernel is `PALLAS_GPU` or `AUTO`."),
    (
        r"at least one accumulator",
        "`pl.run_state` in a kernel is for accumulators: give it at least one `plgpu.ACC.init`.",
    ),
    (r"resource estimation|multiple jaxprs", "Several programs in one `mpmd_map` are not supported on GPUs."),
    (
        r"No axis names are available",
        "This kernel has no named axes: launch it with `plgpu.kernel(..., grid=, grid_names=)`.",
    ),
)


_SILENT = {
    "lower_pipelined_jaxpr_to_module": "`dimension_semantics` has one entry for each dimension of the grid; leave it "
    "out for a kernel without blocks.",
    "_semaphore_signal_multicast_lowering": "`{source}` signals several devices, which is there with "
    "`lowering_semantics=plgpu.LoweringSemantics.Lane` only.",
    "debug_print": "`{source}` prints a value of a type that a kernel cannot print.",
}


def judge(fault: Fault, context: Context) -> Finding | None:
    site = fault.site
    if site is None:
        return None
    last = site.function.rpartition(".")[2]
    if not any(site.file == f and last == name.rpartition(".")[2] for f, name in SITES):
        return None
    place = context.locate(fault)
    source = short(context.source(place), 50)
    if last in _SILENT and not fault.message:
        text = _SILENT[last].format(source=source)
        return finding(__name__, fault, context, narrowed(place, context), text)
    for pattern, text in _TOLD:
        match = re.search(pattern, fault.message)
        if match is None:
            continue
        told = fault.message.rpartition("got ")[2].rstrip(".") if "{match}" in text else ""
        message = text.format(source=source, match=told, **match.groupdict())
        syntax, node = context.syntax(place.path), context.node(place)
        spot = Spot(place.path, syntax, node) if syntax is not None and isinstance(node, ast.expr) else None
        return finding(__name__, fault, context, narrowed(place, context), message, (), _fixes(pattern, spot))
    return None


def _fixes(pattern: str, spot: Spot | None) -> Iterator[Fix | None]:
    call = spot.node if spot is not None and isinstance(spot.node, ast.Call) else None
    if spot is None or call is None:
        return
    unwanted = "unroll" if "unroll" in pattern or "integer when" in pattern else ""
    unwanted = "ordered" if "Ordered" in pattern else unwanted
    keyword = next((k for k in call.keywords if k.arg == unwanted), None)
    if keyword is not None:
        edits = Editor(spot.path, spot.syntax)
        edits.remove_argument(call, keyword)
        yield suggested(f"Leave `{unwanted}` out", edits)
