"""A zygote has a child ready for the next run, and answers a run as soon as it is done."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from worker_helpers import FAKE, started, wait_gone

from pallas_lsp.engine.engine import Engine
from pallas_lsp.engine.settings import Settings
from pallas_lsp.rules.base import registry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers fork on Linux only")

PID = "import os\nemit('capture', {'pid': os.getpid()})\n"


def children(pid: int) -> set[int]:
    return {int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


async def waiting(zygote: int, *others: int) -> int:
    """The child that waits for a run."""
    for _ in range(500):
        found = children(zygote) - set(others)
        if len(found) == 1:
            return found.pop()
        await asyncio.sleep(0.02)
    raise AssertionError(f"children: {children(zygote)}, of which {others} are known")


async def test_a_run_is_carried_out_by_the_child_that_waited_and_the_next_by_another(server_python):
    async with started(server_python) as worker:
        waited, ran = set(), []
        for _ in range(40):  # one that is not ready yet is left for the next run
            waited.add(await waiting(worker.worker.pid, *ran))
            await asyncio.sleep(0.1)
            await worker.run(PID)
            ran.append(worker.events[-1][1]["pid"])
            if len(waited & set(ran)) == 3:
                break
        assert len(waited & set(ran)) == 3
        assert len(ran) == len(set(ran))
        assert wait_gone(*ran) == []


async def test_a_child_that_died_while_it_waited_harms_no_run(server_python):
    async with started(server_python) as worker:
        pid = await waiting(worker.worker.pid)
        os.kill(pid, signal.SIGKILL)
        assert wait_gone(pid) == []
        await worker.run(PID)
        pid = await waiting(worker.worker.pid, pid, worker.events[0][1]["pid"])
        os.kill(pid, signal.SIGKILL)
        assert wait_gone(pid) == []
        await worker.run(PID)
        assert pid not in {fields["pid"] for _, fields in worker.events}


async def test_a_request_that_no_pipe_holds_at_once_arrives_whole(server_python):
    async with started(server_python) as worker:
        await waiting(worker.worker.pid)
        padding = "#" * (5 << 20)
        await worker.run("emit('capture', {'length': len(params['documents']['/x.py'])})\n" + padding)
        assert worker.events[0][1]["length"] > len(padding)


async def test_requests_at_once_get_children_of_their_own(server_python):
    async with started(server_python) as worker:
        await waiting(worker.worker.pid)
        await asyncio.gather(*(worker.run(PID + "import time; time.sleep(.2)") for _ in range(4)))
        assert len({fields["pid"] for _, fields in worker.events}) == 4


async def test_the_waiting_child_ends_with_its_zygote(server_python):
    async with started(server_python) as worker:
        pid = await waiting(worker.worker.pid)
        os.kill(worker.worker.pid, signal.SIGKILL)
        assert wait_gone(pid) == []
    async with started(server_python) as worker:
        pid = await waiting(worker.worker.pid)
    assert wait_gone(pid) == []


async def test_the_answer_does_not_wait_until_the_process_is_gone(server_python):
    """Here its end takes ten minutes, as if it had that much memory to give back."""
    code = PID + "import time\nos._exit = lambda status: time.sleep(600)\n"
    async with started(server_python) as worker:
        async with asyncio.timeout(20):
            assert await worker.run(code)
        assert wait_gone(worker.events[0][1]["pid"]) == []
        assert await worker.run(PID)


async def test_no_number_of_runs_makes_the_zygote_larger(server_python):
    """It is not started anew after so many runs: what they allocate is in their own processes and goes with them."""
    code = PID + "import sys\nkept = bytearray(64 << 20)\nsys.kept = kept\n"
    async with started(server_python) as worker:
        for _ in range(3):
            await worker.run(code)
        before = resident(worker.worker.pid)
        for _ in range(30):
            await worker.run(code)
        assert len({fields["pid"] for _, fields in worker.events}) == 33
        assert resident(worker.worker.pid) - before < 2 << 20


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_the_rules_are_read_while_the_interpreter_starts(server_python):
    registry.cache_clear()
    engine = Engine(Settings(python=server_python, worker=FAKE))
    try:
        await engine.worker_info("/x.py")
        for _ in range(200):
            if registry.cache_info().currsize:
                break
            await asyncio.sleep(0.05)
        assert registry.cache_info().currsize == 1
    finally:
        await engine.aclose()
