"""Runs that go wrong in every way: each ends, is told by its name, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from pathlib import Path

import pytest
from worker_helpers import LIMITS, started, wait_gone

from pallas_lsp.engine.errors import RunFailed
from pallas_lsp.engine.settings import Limits

PIDS = """
import os
def tell(**more): emit('capture', {'pid': os.getpid(), **more})
"""


async def failure(worker, code: str, limits: Limits = LIMITS) -> RunFailed:
    with pytest.raises(RunFailed) as caught:
        await worker.run(textwrap.dedent(code), limits)
    return caught.value


async def gone(folder: str) -> bool:
    for _ in range(1000):
        if not Path(folder).exists():
            return True
        await asyncio.sleep(0.02)
    return False


async def test_events_arrive_in_order_with_the_answer(server_python, fork):
    async with started(server_python, fork=fork) as worker:
        result = await worker.run("for n in range(300): emit('capture', {'n': n, 'text': 'x' * n})")
        assert result["seconds"] >= 0
        assert [fields["n"] for _, fields in worker.events] == list(range(300))
        assert worker.worker.forks is fork


async def test_a_line_of_many_megabytes(server_python, fork):
    async with started(server_python, fork=fork) as worker:
        text = "é" * 3_000_000
        await worker.run(f"# {text}\nemit('fault', {{'text': params['documents']['/x.py'][2:3000002]}})")
        assert worker.events[0][1]["text"] == text


async def test_prints_reach_the_log_and_never_the_stream(server_python, fork):
    code = """
        import os, sys, subprocess
        print('to stdout é')
        print('to stderr', file=sys.stderr)
        os.write(1, b'to descriptor 1\\n')
        subprocess.run([sys.executable, '-c', 'print("from a child process")'])
        sys.__stdout__.write('no newline at the end')
        emit('fault', {'read': sys.stdin.read()})
        """
    async with started(server_python, fork=fork) as worker:
        await worker.run(textwrap.dedent(code))
        assert worker.events == [("fault", {"read": "", "run": worker.events[0][1]["run"]})]
        for text in ("to stdout é", "to stderr", "to descriptor 1", "from a child process", "no newline at the end"):
            assert await worker.logged(text), text


async def test_endless_prints_do_not_fill_the_log(server_python):
    async with started(server_python) as worker:
        await worker.run("import sys\nfor n in range(200000): print('line', n)\nprint('x' * 10_000_000)")
        await asyncio.sleep(0.1)
        assert len(worker.log) < 1200
        assert max(map(len, worker.log)) <= 4000


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("import os; os._exit(3)", "exited", "status 3"),
        ("import os; os._exit(0)", "exited", "status 0"),
        ("import sys; sys.exit(4)", "exited", "SystemExit(4)"),
        ("raise SystemExit", "exited", "SystemExit"),
        ("import os; os.abort()", "crashed", "SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "out-of-memory", ""),
        ("raise MemoryError", "out-of-memory", "memory"),
        ("raise ValueError('of ours')", "internal-error", "ValueError: of ours"),
        ("raise KeyboardInterrupt", "internal-error", "KeyboardInterrupt"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "SIGSEGV"),
    ],
)
async def test_deaths_by_name(server_python, fork, code, kind, text):
    folder = "import os; emit('capture', {'folder': os.getcwd()})"
    async with started(server_python, fork=fork) as worker:
        error = await failure(worker, f"{folder}\nemit('stage', {{'stage': 'drive'}})\n{code}")
        assert (error.kind, error.stage) == (kind, "drive")
        assert await gone(worker.events[0][1]["folder"])
        assert text in error.message
        if fork:
            assert await worker.run("emit('capture', {})")


async def test_memory_has_a_limit(server_python, fork):
    limits = Limits(memory_bytes=256 << 20)
    async with started(server_python, fork=fork) as worker:
        error = await failure(worker, "hoard = []\nwhile True: hoard.append(bytearray(1 << 22))", limits)
        assert error.kind == "out-of-memory"


async def test_an_endless_loop_is_ended_and_others_go_on(server_python, fork):
    limits = Limits(trace_seconds=0.5)
    async with started(server_python, fork=fork) as worker:
        error = await failure(worker, PIDS + "tell()\nemit('stage', {'stage': 'drive'})\nwhile True: pass", limits)
        assert (error.kind, error.stage, error.message) == ("timed-out", "drive", "took more than 0.5 s")
        assert wait_gone(worker.events[0][1]["pid"]) == []
        if fork:
            assert await worker.run("pass")


async def test_a_stage_restarts_the_clock(server_python):
    limits = Limits(import_seconds=3.0, trace_seconds=3.0, lower_seconds=3.0)
    code = "import time\nfor n in range(4):\n  emit('stage', {'stage': 'lower'})\n  time.sleep(1.2)"
    async with started(server_python) as worker:
        await worker.run(code, limits)


async def test_a_run_has_a_limit_as_a_whole(server_python):
    limits = Limits(total_seconds=1.2)
    async with started(server_python) as worker:
        error = await failure(
            worker, "import time\nwhile True:\n  emit('stage', {'stage': 'drive'})\n  time.sleep(.05)", limits
        )
        assert error.kind == "timed-out"


async def test_processor_time_has_a_limit(server_python, fork):
    limits = Limits(cpu_seconds=1)
    async with started(server_python, fork=fork) as worker:
        error = await failure(worker, "emit('stage', {'stage': 'drive'})\nwhile True: pass", limits)
        assert error.kind == "timed-out"


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
async def test_what_a_run_started_ends_with_it(server_python, fork):
    code = PIDS + (
        "import subprocess, sys\n"
        "children = [subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']) for _ in range(3)]\n"
        "tell(children=[c.pid for c in children])\n"
        "forked = os.fork()\n"
        "if not forked:\n"
        "  import time, signal\n"
        "  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "  while True: time.sleep(1)\n"
        "tell(children=[forked])\n"
    )
    async with started(server_python, fork=fork) as worker:
        await worker.run(code)
        pids = [pid for _, fields in worker.events for pid in (fields["pid"], *fields["children"])]
        assert len(set(pids)) == 5
        assert wait_gone(*pids) == []


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
async def test_a_daemon_in_a_session_of_its_own_is_ended_too(server_python):
    code = PIDS + (
        "if not os.fork():\n"
        "  os.setsid()\n"
        "  if os.fork(): os._exit(0)\n"
        "  tell()\n"
        "  import time; time.sleep(600)\n"
        "import time; time.sleep(.3)\n"
    )
    async with started(server_python) as worker:
        await worker.run(code)
        assert wait_gone(worker.events[0][1]["pid"]) == []


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
async def test_a_bounded_fork_bomb_is_ended(server_python, fork):
    code = PIDS + (
        "import time\n"
        "emit('stage', {'stage': 'drive'})\n"
        "for _ in range(5):\n"
        "  if os.fork(): continue\n"
        "tell()\n"
        "while True: time.sleep(1)\n"
    )
    async with started(server_python, fork=fork) as worker:
        error = await failure(worker, code, Limits(trace_seconds=1.0))
        assert error.kind == "timed-out"
        pids = [fields["pid"] for method, fields in worker.events if method == "capture"]
        assert len(pids) > 10
        assert wait_gone(*pids) == []
        assert not fork or worker.worker.alive


async def test_a_cancelled_task_ends_its_run_only(server_python):
    async with started(server_python) as worker:
        endless = asyncio.create_task(worker.run(PIDS + "tell()\nwhile True: pass"))
        while not worker.events:
            await asyncio.sleep(0.02)
        other = asyncio.create_task(worker.run("import time; time.sleep(.5)"))
        await asyncio.sleep(0.1)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert await other
        assert wait_gone(worker.events[0][1]["pid"]) == []


async def test_runs_share_nothing(server_python):
    async with started(server_python) as worker:
        code = "import sys\nemit('capture', {'seen': hasattr(sys, 'leak')})\nsys.leak = 1"
        await asyncio.gather(*(worker.run(code) for _ in range(4)))
        assert [fields["seen"] for _, fields in worker.events] == [False] * 4


async def test_a_run_works_in_a_folder_that_goes_away(server_python, fork):
    code = (
        "import os, tempfile\n"
        "open('result.npz', 'w').write('x')\n"
        "name = tempfile.mkstemp()[1]\n"
        "emit('capture', {'folder': os.getcwd(), 'temporary': name})\n"
    )
    async with started(server_python, fork=fork) as worker:
        await worker.run(code)
        told = worker.events[0][1]
        assert Path(told["temporary"]).parent == Path(told["folder"])
        await worker.worker.close()
        assert not Path(told["folder"]).exists()


async def test_signals_are_as_in_a_fresh_process(server_python, fork):
    code = (
        "import signal, threading\n"
        "emit('capture', {'int': signal.getsignal(signal.SIGINT) is signal.default_int_handler,\n"
        "  'term': signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,\n"
        "  'main': threading.current_thread() is threading.main_thread()})\n"
    )
    async with started(server_python, fork=fork) as worker:
        await worker.run(code)
        assert {key: worker.events[0][1][key] for key in ("int", "term", "main")} == dict.fromkeys(
            ("int", "term", "main"), True
        )


async def test_user_code_that_closes_or_writes_to_every_descriptor(server_python):
    async with started(server_python) as worker:
        error = await failure(worker, "import os; os.closerange(3, 256); emit('capture', {})")
        assert error.kind in ("exited", "crashed")
        write = "  try: os.write(n, b'garbage\\n')\n  except OSError: pass\n"
        code = f"import os\nfor n in range(3, 40):\n{write}emit('capture', {{}})"
        await worker.run(code)
        assert [method for method, _ in worker.events] == ["capture"]


async def test_a_worker_without_fork_serves_one_run(server_python):
    async with started(server_python, fork=False) as worker:
        await worker.run("pass")
        with pytest.raises(RunFailed):
            await worker.run("pass")
        assert wait_gone(worker.worker.pid) == []


async def test_an_import_that_started_a_backend_forbids_forking(server_python):
    async with started(server_python, FAKE_STARTED="1") as worker:
        assert not worker.worker.forks
        assert await worker.logged("must not be forked")


async def test_the_environment_of_a_run(server_python, fork):
    told = "{'env': dict(os.environ), 'path': sys.path, 'bytecode': sys.dont_write_bytecode}"
    code = f"import os, sys\nemit('capture', {told})"
    async with started(server_python, fork=fork, JAX_PLATFORMS="cuda", MINE="1") as worker:
        await worker.run(code)
        told = worker.events[0][1]
        assert told["env"]["JAX_PLATFORMS"] == "cpu"
        assert told["env"]["MINE"] == "1"
        assert told["bytecode"] is True
        assert not any(entry.endswith("pallas_lsp/worker") for entry in told["path"])


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_a_killed_worker_ends_its_runs(server_python, fork):
    async with started(server_python, fork=fork) as worker:
        running = asyncio.create_task(worker.run(PIDS + "tell()\nimport time; time.sleep(600)"))
        while not worker.events:
            await asyncio.sleep(0.02)
        os.kill(worker.worker.pid, 9)
        with pytest.raises(RunFailed) as caught:
            await running
        assert caught.value.kind in ("out-of-memory", "crashed")
        assert wait_gone(worker.events[0][1]["pid"]) == []


async def test_close_ends_all_runs(server_python, fork):
    async with started(server_python, fork=fork) as worker:
        running = asyncio.create_task(worker.run(PIDS + "tell()\nwhile True: pass"))
        while not worker.events:
            await asyncio.sleep(0.02)
        await worker.worker.close()
        with pytest.raises(RunFailed):
            await running
        assert wait_gone(worker.events[0][1]["pid"], worker.worker.pid) == []


def test_json_of_a_lone_surrogate_is_valid():
    assert json.loads(json.dumps({"text": "\ud800"}, separators=(",", ":")).encode("utf-8", "backslashreplace"))
