"""Rules that are short tables, on faults that need a device or a mesh to be raised."""

from __future__ import annotations

import made
import pytest

from pallas_lsp.engine.judge import judge
from pallas_lsp.model import Safety, Stage
from pallas_lsp.source.edits import apply_edits

MGPU = "jax/experimental/mosaic/gpu/"
REGISTRATION = "jax/_src/pallas/mosaic/pallas_call_registration.py"
TEXT = """
from jax.experimental.pallas import mosaic_gpu as plgpu


def kernel(x_ref, o_ref):
    plgpu.async_prefetch(x_ref, collective_axes="c")
"""
CALL = 'plgpu.async_prefetch(x_ref, collective_axes="c")'
CASES = [
    (
        "async-transfer-unsupported",
        (f"{MGPU}dialect_lowering.py", "_mgpu_async_prefetch_op_lowering_rule"),
        "Collective prefetches are not supported yet.",
        '"c"',
        "prefetches for itself",
    ),
    (
        "async-transfer-unsupported",
        (f"{MGPU}dialect_lowering.py", "_async_store_smem_op_lowering_rule"),
        "Transfer of 96 bytes is not divisible by 128",
        "x_ref",
        "stores 96 bytes",
    ),
    (
        "gpu-generation-too-old",
        (f"{MGPU}utils.py", "BarrierRef.arrive_expect_tx"),
        "arrive_expect_tx is only supported on Hopper+ hardware",
        CALL,
        "before the Hopper generation",
    ),
    (
        "gpu-generation-too-old",
        (f"{MGPU}launch_context.py", "LaunchContext.async_copy"),
        "Only 2D copies implemented",
        CALL,
        "without the copy engine",
    ),
    (
        "tmem-layout-not-divisible",
        (f"{MGPU}layout_inference.py", "_tcgen05_mma_constraint_system.<locals>.assign_scaled_layout"),
        "Cannot assign TMEMLayout(layout=TMEMLayout(tiling=Tiling(tiles=((128, 4), (32, 4))), warp_dims=(-4,))) to "
        "scale_operand=Value(%3) with shape (64, 4).",
        CALL,
        "tiles of (128, 4)",
    ),
    (
        "tmem-layout-not-divisible",
        (f"{MGPU}layout_inference.py", "_tmem_layout_cast_constraint_system"),
        "Cannot cast to TMEM layout TMEMLayout(tiling=Tiling(tiles=((128, 8), (32, 8)))) in op: the layout is not "
        "compatible with the operand shape (64, 12).",
        CALL,
        "of shape (64, 12), which does not divide into tiles of (128, 8)",
    ),
    (
        "tpu-operation-argument",
        ("jax/_src/pallas/mosaic/lowering.py", "_run_scoped_lowering_rule"),
        "run_scoped lowering does not support collective axes",
        '"c"',
        "belongs to one core",
    ),
    (
        "mosaic-gpu-launch-unsupported",
        ("jax/_src/pallas/mosaic_gpu/lowering.py", "_core_map_lowering_rule"),
        "Cannot nest core_maps. Already under core_map with warp_axis_name w.",
        CALL,
        "is in one already",
    ),
    (
        "mosaic-gpu-launch-unsupported",
        ("jax/_src/pallas/mosaic_gpu/primitives.py", "_semaphore_signal_multicast_lowering"),
        "",
        CALL,
        "LoweringSemantics.Lane",
    ),
    (
        "ref-view-unsupported",
        ("jax/_src/pallas/mosaic_gpu/core.py", "UntilingTransform.commute_reshape"),
        "",
        CALL,
        "breaks its tiles apart",
    ),
    (
        "tpu-memory-space-conflict",
        (REGISTRATION, "_resolve_memory_spaces"),
        "In/out memory space conflict for alias 0->1: MemorySpace.VMEM != MemorySpace.HBM",
        CALL,
        "Output 1 is written over input 0, but the input lies in VMEM and the output in HBM",
    ),
    (
        "tpu-memory-space-conflict",
        (REGISTRATION, "_get_memory_space_from_aval"),
        "Invalid kernel type for semaphore: CoreType.SC_VECTOR_SUBCORE",
        CALL,
        "lies in semaphore, which a core of the kind SC_VECTOR_SUBCORE",
    ),
]


@pytest.mark.parametrize(("rule", "site", "message", "marked", "says"), CASES)
def test_what_is_said(rule: str, site: tuple[str, str], message: str, marked: str, says: str) -> None:
    exception = "builtins.NotImplementedError"
    fault = made.fault(made.frame(TEXT, CALL), site=site, message=message, stage=Stage.LOWER, exception=exception)
    context = made.context(TEXT)
    (finding,) = judge((fault,), context)
    assert (finding.rule, context.source(finding.location)) == (rule, marked)
    assert says in finding.message


def test_a_prefetch_by_each_block() -> None:
    _, site, message, _, _ = CASES[0]
    fault = made.fault(made.frame(TEXT, CALL), site=site, message=message, stage=Stage.LOWER)
    (fix,) = judge((fault,), made.context(TEXT))[0].fixes
    assert fix.safety is Safety.SAFE
    assert apply_edits(TEXT, fix.edits).rstrip().endswith("plgpu.async_prefetch(x_ref)")
