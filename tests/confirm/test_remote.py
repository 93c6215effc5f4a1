"""A GPU that a command reaches: another environment on this machine stands for the other machine."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from confirm_kit import Make, kernel

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked for in /proc")
OTHER = str(Path(__file__).resolve().parent / "other_machine.py")
HELPER = """\
import jax.numpy as jnp


def twice(x):
    return x * 2
"""
USING = (
    kernel()
    .replace("x_ref[...] * 2", "helper.twice(x_ref[...])")
    .replace("import jax\n", "import helper\nimport jax\n", 1)
)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The temporary folder of the other machine."""
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


def command(python: str, there: Path, **script: Any) -> tuple[str, ...]:
    """As ``docker exec`` or ``ssh`` would: nothing of this environment goes along."""
    given = json.dumps({"name": "NVIDIA Far", "log": str(there.parent / "compiled.log"), **script})
    return ("env", "-i", "PATH=/usr/bin:/bin", f"TMPDIR={there}", f"HOME={there}", python, OTHER, given)


def worker_processes(there: Path) -> list[int]:
    """The processes that work for the other machine's temporary folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"TMPDIR={there}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def nothing_left(there: Path) -> None:
    async with asyncio.timeout(15):
        while list(there.glob("pallas-lsp-*")) or worker_processes(there):
            await asyncio.sleep(0.1)


def states(confirmation: Any) -> list[tuple[str, str]]:
    return [
        (device["gpu"], device["state"])
        for status in confirmation.report.launches
        for capture in status.captures
        for device in capture.resources.get("devices", ())
    ]


async def test_the_worker_and_the_sources_travel(confirming: Make, jax_pythons: Any, there: Path) -> None:
    """Through another interpreter; the module that the kernel imports is not on its disk."""
    helper = there.parent / "helper.py"
    helper.write_text(HELPER)
    given = command(jax_pythons[0].python, there, hides=str(helper))
    async with confirming(gpus=(), command=given) as checked:
        confirmation = await checked.confirm(USING)
        assert not helper.exists()
        assert states(confirmation) == [("NVIDIA Far", "compiled")], confirmation.state
        assert confirmation.gpus == ("NVIDIA Far (9.0)",)
        assert list(there.glob("pallas-lsp-*"))
    await nothing_left(there)


async def test_a_shell_is_passed_through(confirming: Make, newest_jax_python: Any, there: Path) -> None:
    line = shlex.join(command(newest_jax_python.python, there)) + ' "$@"'
    async with confirming(gpus=(), command=("sh", "-c", line, "sh")) as checked:
        assert states(await checked.confirm(kernel())) == [("NVIDIA Far", "compiled")]
    await nothing_left(there)


async def test_a_dropped_connection_is_said_and_tried_again_later(
    confirming: Make, newest_jax_python: Any, there: Path
) -> None:
    # A session of its own, as on another machine: nothing of it ends with the command.
    line = (
        "setsid -w " + shlex.join(command(newest_jax_python.python, there, compile={"mul": "hang"})) + ' "$@"; exit $?'
    )
    async with confirming(gpus=(), command=("sh", "-c", line, "sh")) as checked:
        job = asyncio.ensure_future(checked.confirm(kernel()))
        while not checked.compiled:
            await asyncio.sleep(0.05)
        (confirmer,) = next(iter((await checked.confirmations._confirmers()).values()))
        assert confirmer._pool is not None
        link = next(iter(confirmer._pool._slots.values())).ready
        assert link is not None
        os.kill(link.pid, signal.SIGKILL)  # the command's own process: what ssh is to a remote worker
        confirmation = await job
        assert confirmation.state.startswith("unreachable: the connection was dropped"), confirmation.state
        await nothing_left(there)
        again = await checked.confirm(kernel())
        assert again.state == "unreachable: the command did not reach its GPU a moment ago"
        confirmer._not_before = 0.0
        job = asyncio.ensure_future(checked.confirm(kernel()))
        while checked.compiled < 2:
            await asyncio.sleep(0.05)
        job.cancel()
        await asyncio.wait([job])
    await nothing_left(there)


async def test_a_command_that_does_not_exist_or_reaches_no_python(confirming: Make) -> None:
    async with confirming(gpus=(), command=("no-such-command-anywhere",)) as checked:
        assert "no-such-command-anywhere" in (await checked.confirm(kernel())).state
    async with confirming(gpus=(), command=("sh", "-c", "echo refused >&2; exit 255"), name="two") as checked:
        confirmation = await checked.confirm(kernel())
        assert "255" in confirmation.state and confirmation.report.findings == ()


async def test_a_far_machine_without_a_gpu(confirming: Make, newest_jax_python: Any, there: Path) -> None:
    given = command(newest_jax_python.python, there, none="Unable to initialize backend 'cuda'")
    async with confirming(gpus=(), command=given) as checked:
        assert (await checked.confirm(kernel())).state == "no GPU: Unable to initialize backend 'cuda'"
