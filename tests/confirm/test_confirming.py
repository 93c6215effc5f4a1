"""Findings and kernels on a GPU that a script plays: the verdicts, and what goes wrong."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from confirm_kit import GPU, Make, kernel

from pallas_lsp.confirm.gpus import Gpu, Load
from pallas_lsp.model import Stage

CUMSUM = kernel().replace("x_ref[...] * 2", "jnp.cumsum(x_ref[...])")
UNTRACED = kernel().replace("x_ref[...] * 2", "x_ref[0, 0]")
TWO = kernel().replace(
    "def run(x):",
    "def triple(x_ref, o_ref):\n    o_ref[...] = x_ref[...] * 333\n\n\ndef run(x):\n"
    "    plgpu.kernel(triple, out_type=jax.ShapeDtypeStruct((128,), jnp.float32))(x)",
)


def verdicts(confirmation: Any) -> list[list[str]]:
    return [[v["verdict"] for v in f.data.get("verdicts", ())] for f in confirmation.report.findings]


def devices(confirmation: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        capture.body.name: list(capture.resources.get("devices", ()))
        for status in confirmation.report.launches
        for capture in status.captures
    }


async def test_a_correct_kernel_brings_its_figures(confirming: Make) -> None:
    async with confirming() as checked:
        confirmation = await checked.confirm(kernel())
        assert confirmation.state == "" and confirmation.gpus == ("NVIDIA Fake (9.0)",)
        (device,) = devices(confirmation)["double"]
        assert device["state"] == "compiled" and device["registers"] == 90
        assert (device["blocksPerSm"], device["limitedBy"]) == (5, "registers")
        (status,) = confirmation.report.launches
        assert status.captures[0].stage is Stage.CONFIRM


async def test_faults_of_trace_and_lowering_are_confirmed(confirming: Make) -> None:
    async with confirming() as checked:
        for text in (CUMSUM, UNTRACED):
            confirmation = await checked.confirm(text)
            assert verdicts(confirmation) == [["confirmed"]]
        assert checked.compiled == 0


async def test_a_path_may_be_relative(confirming: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a command line: findings of the GPU's run meet those of the check all the same."""
    async with confirming() as checked:
        folder = Path(checked.path).parent
        monkeypatch.chdir(folder.parent)
        checked.path = str(Path(folder.name) / "kernels.py")
        for text in (CUMSUM, UNTRACED):
            Path(checked.path).write_text(text)
            assert verdicts(await checked.confirm(text)) == [["confirmed"]]


async def test_what_the_compiler_refuses_is_a_finding_of_the_device(confirming: Make) -> None:
    async with confirming({"compile": {"mul": "fail: INTERNAL: Pass pipeline failed"}}) as checked:
        confirmation = await checked.confirm(kernel())
        (finding,) = confirmation.report.findings
        assert verdicts(confirmation) == [["device only"]]
        assert finding.stage is Stage.CONFIRM
        assert finding.location.range.start.line == 11  # the launch
        assert devices(confirmation)["double"][0]["state"] == "failed"


async def test_a_full_gpu_says_nothing_of_the_kernel_and_is_asked_again(confirming: Make) -> None:
    full = "fail: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4096 bytes."
    async with confirming({"compile": {"mul": full}}) as checked:
        for _ in range(2):
            confirmation = await checked.confirm(kernel())
            assert confirmation.report.findings == ()
            assert devices(confirmation)["double"][0]["state"] == "no memory"
        assert checked.compiled == 2


async def test_a_compile_that_takes_too_long_times_out_and_the_rest_is_compiled(confirming: Make) -> None:
    async with confirming({"compile": {"333": "hang"}}, seconds=3.0) as checked:
        confirmation = await checked.confirm(TWO)
        found = devices(confirmation)
        assert found["triple"][0]["state"] == "timed out"
        assert found["double"][0]["state"] == "compiled"
        again = await checked.confirm(TWO + "# a comment changes no program\n")
        assert devices(again)["triple"][0]["state"] == "timed out"
        assert checked.compiled == 2  # each once


async def test_a_compiler_that_crashes_is_named_and_not_tried_again(confirming: Make) -> None:
    async with confirming({"compile": {"333": "crash"}}) as checked:
        confirmation = await checked.confirm(TWO)
        assert devices(confirmation)["double"][0]["state"] == "compiled"
        assert verdicts(confirmation) == [["device only"]]
        assert "SIGSEGV" in confirmation.report.findings[0].message
        await checked.confirm(TWO)
        assert checked.compiled == 2


async def test_verdicts_are_kept_for_other_sessions(confirming: Make) -> None:
    for _ in range(2):
        async with confirming() as checked:
            assert devices(await checked.confirm(kernel()))["double"][0]["registers"] == 90
            assert verdicts(await checked.confirm(CUMSUM)) == [["confirmed"]]
    assert checked.compiled == 1


async def test_a_launch_that_fails_or_does_not_end(confirming: Make) -> None:
    async with confirming({"launch": {"333": "hang"}}, launch=True, launch_seconds=2.0) as checked:
        confirmation = await checked.confirm(TWO)
        assert verdicts(confirmation) == [["device only"]]
        assert "2 s" in confirmation.report.findings[0].message
        assert devices(confirmation)["double"][0]["state"] == "launched"
    failed = "fail: INTERNAL: CUDA error: CUDA_ERROR_LAUNCH_FAILED"
    async with confirming({"launch": {"333": failed}}, launch=True, name="two") as checked:
        confirmation = await checked.confirm(TWO)
        assert verdicts(confirmation) == [["device only"]]
        assert {name: each[0]["state"] for name, each in devices(confirmation).items()} == {
            "double": "launched",
            "triple": "launch failed",
        }


async def test_a_fault_that_only_a_launch_shows_is_not_reproduced_by_compiling(confirming: Make) -> None:
    text = kernel().replace("(128,), jnp.float32))(x)", "(128,), jnp.float32), num_threads=12, thread_name='w')(x)")
    async with confirming() as checked:
        confirmation = await checked.confirm(text)
        assert [finding.rule for finding in confirmation.report.findings] == ["too-many-threads"]
        ((verdict,),) = [finding.data["verdicts"] for finding in confirmation.report.findings]
        assert verdict["verdict"] == "not reproduced" and "only a launch could show" in verdict["detail"]
    failed = "fail: INTERNAL: launch failed: CUDA_ERROR_INVALID_VALUE [invalid argument] (CUDA error 1)"
    async with confirming({"launch": {"mul": failed}}, launch=True, name="two") as checked:
        confirmation = await checked.confirm(text)
        assert [finding.rule for finding in confirmation.report.findings] == ["too-many-threads"]
        assert verdicts(confirmation) == [["confirmed"]]


async def test_no_launch_without_being_asked(confirming: Make) -> None:
    async with confirming({"launch": {"mul": "fail: launched"}}) as checked:
        assert (await checked.confirm(kernel())).report.findings == ()


async def test_a_machine_without_a_driver(confirming: Make) -> None:
    async with confirming(gpus=()) as checked:
        confirmation = await checked.confirm(CUMSUM)
        assert confirmation.state == "no GPU: no NVIDIA driver was found"
        assert verdicts(confirmation) == [[]]


async def test_a_gpu_that_jax_does_not_come_to(confirming: Make) -> None:
    async with confirming({"none": "Unable to initialize backend 'cuda'"}) as checked:
        confirmation = await checked.confirm(CUMSUM)
        assert confirmation.state == "no GPU: Unable to initialize backend 'cuda'"


async def test_a_gpu_that_others_use_is_waited_for(confirming: Make) -> None:
    loads = [Load(100, 70 << 30), Load(0, 1 << 20), Load(0, 70 << 30)]
    async with confirming(load=lambda _: loads.pop(0) if len(loads) > 1 else loads[0], patience=10.0) as checked:
        assert (await checked.confirm(kernel())).state == ""
    async with confirming(load=lambda _: Load(100, 70 << 30), name="two") as checked:
        confirmation = await checked.confirm(kernel())
        assert confirmation.state == "busy: NVIDIA Fake is 100 % busy with other work"
        assert checked.compiled == 1


async def test_a_confirmer_that_is_killed_mid_job_is_started_again(confirming: Make) -> None:
    async with confirming({"compile": {"mul": "hang"}}) as checked:
        job = asyncio.ensure_future(checked.confirm(kernel()))
        while not checked.compiled:
            await asyncio.sleep(0.05)
        (confirmer,) = next(iter((await checked.confirmations._confirmers()).values()))
        assert confirmer._pool is not None
        worker = next(iter(confirmer._pool._slots.values())).ready
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
        while checked.compiled < 2:
            await asyncio.sleep(0.05)
            assert not job.done()
        job.cancel()
        await asyncio.wait([job])


async def test_a_process_with_a_started_gpu_is_kept_ready(confirming: Make) -> None:
    """The first job is forked; the next goes to the spare, and what it says of a crash is the same."""
    async with confirming({"compile": {"333": "crash"}}, warm=True) as checked:
        assert devices(await checked.confirm(kernel()))["double"][0]["state"] == "compiled"
        (confirmer,) = next(iter((await checked.confirmations._confirmers()).values()))
        for number in range(2):
            spares = confirmer._spares
            assert spares is not None
            (python,) = confirmer._pool._slots
            while not spares.ready(python):
                await asyncio.sleep(0.05)
            spare = spares._slots[python].ready.pid
            confirmation = await checked.confirm(TWO.replace("* 2", f"* {number + 4}"))
            assert [each["state"] for each in devices(confirmation)["double"]] == ["compiled"]
            assert verdicts(confirmation) == [["device only"]]
            async with asyncio.timeout(5):
                while Path(f"/proc/{spare}").exists():  # it has run the user's code
                    await asyncio.sleep(0.05)


async def test_a_cancelled_confirmation_leaves_no_process(confirming: Make) -> None:
    async with confirming({"compile": {"mul": "hang"}}) as checked:
        job = asyncio.ensure_future(checked.confirm(kernel()))
        while not checked.compiled:
            await asyncio.sleep(0.05)
        (confirmer,) = next(iter((await checked.confirmations._confirmers()).values()))
        assert confirmer._pool is not None
        worker = next(iter(confirmer._pool._slots.values())).ready
        assert worker is not None
        ((run, _),) = worker._started.values()  # beside it there may be a child that waits for the next run
        job.cancel()
        await asyncio.wait([job])
        for _ in range(100):
            if not Path(f"/proc/{run}").exists():
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("the run's process is still there")
        await checked.engine.aclose()
        assert not Path(f"/proc/{worker.pid}").exists()


async def test_two_editors_on_one_gpu_take_turns(confirming: Make) -> None:
    async with confirming(name="one") as first, confirming(name="two") as second:
        both = await asyncio.gather(first.confirm(kernel()), second.confirm(kernel()))
        assert [devices(each)["double"][0]["state"] for each in both] == ["compiled", "compiled"]


async def test_each_kind_of_gpu_says_its_own(confirming: Make) -> None:
    other = Gpu(1, "GPU-fake-1", "NVIDIA Other", "8.0", 40 << 30)
    twin = Gpu(2, "GPU-fake-2", "NVIDIA Fake", "9.0", 80 << 30)
    async with confirming(gpus=(GPU, other, twin)) as checked:
        kinds = await checked.confirmations._confirmers()
        assert {kind: len(each) for kind, each in kinds.items()} == {"NVIDIA Fake (9.0)": 2, "NVIDIA Other (8.0)": 1}
        confirmation = await checked.confirm(CUMSUM)
        assert verdicts(confirmation) == [["confirmed", "confirmed"]]


async def test_a_kernel_for_another_kind_of_gpu(confirming: Make) -> None:
    old = Gpu(0, "GPU-old", "NVIDIA Old", "8.0", 40 << 30)
    async with confirming({"name": "NVIDIA Old", "compute_capability": "8.0"}, gpus=(old,)) as checked:
        confirmation = await checked.confirm(kernel())
        assert confirmation.report.findings == ()
        (device,) = devices(confirmation)["double"]
        assert (device["state"], device["needs"]) == ("other", "compute capability 9.0")
        assert checked.compiled == 0
