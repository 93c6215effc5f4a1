"""Faults that only a GPU shows, with the messages that one gave (NVIDIA H200, jax 0.11.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import made
import pytest
from jax_environments import JaxPython
from snippets import Snippet, check

from pallas_lsp.engine.judge import judge
from pallas_lsp.model import Finding, Severity, Stage
from pallas_lsp.source.edits import apply_edits
from pallas_lsp.source.positions import Lines

TEXT = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import triton as plt

ASM = "addd.f32 $0, $1, $2;"


def body(x_ref, o_ref):
    (y,) = plt.elementwise_inline_asm(ASM, args=[x_ref[...]], constraints="=f,f,f", pack=1, result_shape_dtypes=[x_ref])
    o_ref[...] = y


def run(x):
    return plgpu.kernel(
        body,
        out_type=x,
        cluster=(4, 8),
        cluster_names=("a", "b"),
        num_threads=16,
        thread_name="wg",
        scratch_types=[plgpu.TMEM((128, 128), jnp.float32)],
        compiler_params=plt.CompilerParams(num_warps=4, num_stages=3),
    )(x)


run(1)
"""
COMPILER = ("jax/_src/compiler.py", "backend_compile_and_load")
LAUNCH = (
    "Mosaic GPU kernel 'copy_mosaic_gpu_kernel' (host func: '_mlir_ciface_copy_mosaic_gpu', device: 0, smem: 0 bytes, "
)
PTXAS = (
    "INTERNAL: ptxas exited with non-zero error code 65280, output: ptxas /tmp/x/tempfile-vm-949, line 33; error   : "
)
LAUNCH_SOURCE = TEXT[TEXT.index("plgpu.kernel(") : TEXT.index("(x)\n\n\nrun")]


def on_device(message: str, exception: str = "jax.errors.JaxRuntimeError", **facts: Any) -> Finding:
    launch = made.frame(TEXT, LAUNCH_SOURCE)
    own = made.Body(made.PATH, 10, "body")
    capture = made.Capture("c1", "plgpu.kernel", made.BACKEND_NONE, "main", "f32[64]", launch=launch, body=own)
    fault = made.fault(
        launch, exception=exception, message=message, site=COMPILER, stage=Stage.CONFIRM, by="launch", facts=facts
    )
    (finding,) = judge([fault], made.context(TEXT, captures=[capture]))
    return finding


def source(finding: Finding) -> str:
    return Lines(TEXT).slice(finding.location.range)


def mesh(**given: Any) -> Mapping[str, Any]:
    return {"mesh": given}


def test_a_cluster_that_is_too_large() -> None:
    message = f"INTERNAL: {LAUNCH}cluster: 32) launch failed: CUDA_ERROR_INVALID_CLUSTER_SIZE [...] (CUDA error 912)"
    finding = on_device(message, given=mesh(cluster=[4, 8]))
    assert (finding.rule, source(finding)) == ("cluster-too-large", "(4, 8)")
    assert "4 x 8 = 32 blocks" in finding.message and "at most 16" in finding.message
    smaller = on_device(message, given=mesh(cluster=[16]))
    assert smaller.message.startswith("This GPU does not take a cluster of 16 blocks; only 8 always fit.")
    assert "8 blocks always fit" in on_device(message).message


def test_too_many_threads() -> None:
    message = f"INTERNAL: {LAUNCH}cluster: 1) launch failed: CUDA_ERROR_INVALID_VALUE [invalid argument] (CUDA error 1)"
    finding = on_device(message, given=mesh(num_threads=16))
    assert (finding.rule, source(finding)) == ("too-many-threads", "16")
    assert "2048 CUDA threads" in finding.message
    other = on_device(message, given=mesh(num_threads=4))
    assert (other.rule, source(other)) == ("kernel-launch-failed", "plgpu.kernel")


def test_shared_memory_that_only_the_compiler_knows() -> None:
    finding = on_device(
        "RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 1048576, available: 232448, context: []"
    )
    assert (finding.rule, source(finding)) == ("device-shared-memory-exceeded", "3")
    assert "1024 KiB" in finding.message and "227 KiB" in finding.message and "3 stages" in finding.message
    assert [fix.title for fix in finding.fixes] == ["Hold 2 stages at a time", "Hold 1 stage at a time"]
    assert "num_stages=2" in apply_edits(TEXT, finding.fixes[0].edits)


def test_an_instruction_of_another_gpu() -> None:
    frame = made.frame(TEXT, "plgpu.TMEM((128, 128), jnp.float32)")
    place = {
        "path": frame.path,
        "line": frame.line,
        "column": frame.column,
        "end_line": frame.end_line,
        "end_column": frame.end_column,
        "function": "run",
        "origin": "workspace",
    }
    needed = "need compute capability 10.0; NVIDIA H200 has 9.0"
    exception = "pallas_lsp_worker.confirming.OtherGpuNeeded"
    scratch = {"scratch": [{"memory_space": "tmem", "frames": [place]}]}
    finding = on_device(f"its memory spaces {needed}", exception, given=scratch)
    assert (finding.rule, source(finding)) == ("instruction-not-on-device", "plgpu.TMEM((128, 128), jnp.float32)")
    assert "tensor memory (TMEM), which needs compute capability 10.0, but NVIDIA H200 has 9.0" in finding.message
    finding = on_device(f"tcgen05_mma, tcgen05_commit_arrive {needed}", exception)
    assert source(finding) == "plgpu.kernel" and "`tcgen05_mma`, `tcgen05_commit_arrive`" in finding.message
    finding = on_device(PTXAS + "Instruction 'tcgen05.alloc' not supported on .target 'sm_90a'\nptxas fatal   : x")
    assert finding.rule == "instruction-not-on-device"
    assert "`tcgen05.alloc`, which this GPU (sm_90a) does not have" in finding.message


def test_what_the_assembler_refuses() -> None:
    aborted = "\nptxas fatal   : Ptx assembly aborted due to errors\n"
    finding = on_device(PTXAS + "Not a name of any known instruction: 'addd'" + aborted)
    assert (finding.rule, source(finding)) == ("ptx-refused", '"addd.f32 $0, $1, $2;"')
    assert "refuses this kernel: Not a name of any known instruction: 'addd'." in finding.message
    finding = on_device(PTXAS + "Entry function 'k' uses too much shared data (0x40000 bytes, 0x38c00 max)" + aborted)
    assert source(finding) == "plgpu.kernel" and "what jax generates" in finding.message


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("ILLEGAL_ADDRESS", "memory outside of its arrays (CUDA_ERROR_ILLEGAL_ADDRESS)"),
        ("MISALIGNED_ADDRESS", "not a multiple"),
        ("OPERATING_SYSTEM", "fails: CUDA_ERROR_OPERATING_SYSTEM."),
    ],
)
def test_a_launch_that_fails(code: str, says: str) -> None:
    finding = on_device(f"INTERNAL: CUDA error: Could not synchronize on GPU: CUDA_ERROR_{code}: an error")
    assert (finding.rule, source(finding)) == ("kernel-launch-failed", "plgpu.kernel")
    assert says in finding.message


def test_a_launch_that_does_not_end() -> None:
    finding = on_device("the kernel did not end within 8 s", "pallas_lsp.LaunchTimedOut")
    assert finding.rule == "kernel-launch-never-ends" and "8 s" in finding.message


def test_what_is_unknown_keeps_the_compilers_words() -> None:
    assert on_device("INTERNAL: Pass pipeline failed").rule == "pallas-error"


HEAD = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


"""
CALL = """\
def run(x):
    return plgpu.kernel(copy, out_type=jax.ShapeDtypeStruct((128,), jnp.float32), {})(x)
{}


if __name__ == "__main__":
    run(jnp.zeros((128,), jnp.float32))
"""


def launch(arguments: str, marked: str = "") -> str:
    line = CALL.splitlines()[1].format(arguments)
    mark = " " * (line.rindex(marked) - 1) + "#" + "^" * len(marked) if marked else ""
    return CALL.format(arguments, mark)


CLUSTERS = {
    "one_axis": Snippet(launch('cluster=(32,), cluster_names=("c",)', "(32,)"), says=("32 blocks", "at most 16")),
    "two_axes": Snippet(launch('cluster=(4, 8), cluster_names=("a", "b")', "(4, 8)"), says=("4 x 8 = 32 blocks",)),
    "sixteen": Snippet(launch('cluster=(16,), cluster_names=("c",)'), rule=""),
}
THREADS = {
    "twelve": Snippet(launch('num_threads=12, thread_name="wg"', "12"), says=("1536", "8 at most")),
    "eight": Snippet(launch('num_threads=8, thread_name="wg"'), rule=""),
}


def test_clusters_are_seen_without_a_gpu(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "cluster-too-large", HEAD, CLUSTERS)


def test_threads_are_seen_without_a_gpu(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, "too-many-threads", HEAD, THREADS)


def test_they_are_errors() -> None:
    finding = on_device("CUDA_ERROR_INVALID_CLUSTER_SIZE", given=mesh(cluster=[32]))
    assert finding.severity is Severity.ERROR
