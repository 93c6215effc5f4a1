"""An engine that is killed leaves no process behind, whatever its runs were doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from worker_helpers import FAKE, wait_gone

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

ENGINE = """
import asyncio, json, sys
from pallas_lsp.engine.process import Worker
from pallas_lsp.engine.settings import Limits

CODE = '''
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
emit("capture", {"pids": [os.getpid(), child.pid]})
while True: {loop}
'''

async def main():
    worker = await Worker.start(
        sys.argv[1], environment=json.loads(sys.argv[2]), log=lambda line: None, limits=Limits(), program=sys.argv[3]
    )
    def told(method, fields):
        print(*fields["pids"], worker.pid, flush=True)
    code = CODE.replace("{loop}", sys.argv[4])
    await worker.run({"path": "/x", "documents": {"/x": code}, "limits": {}}, told, Limits())

asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("loop", ["pass", "import time; time.sleep(60)"])
def test_a_killed_engine(server_python, fork, how, loop, project_root):
    environment = "{}" if fork else '{"PALLAS_LSP_FORK": "0"}'
    engine = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ENGINE), server_python, environment, FAKE, loop],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=project_root,
    )
    pids = [int(pid) for pid in engine.stdout.readline().split()]
    assert len(pids) == 3
    os.kill(engine.pid, how)
    engine.wait(20)
    engine.stdout.close()
    assert wait_gone(*pids) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the zygote is Linux only")
def test_a_killed_zygote(server_python, project_root):
    engine = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ENGINE), server_python, "{}", FAKE, "pass"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=project_root,
    )
    pids = [int(pid) for pid in engine.stdout.readline().split()]
    os.kill(pids[-1], signal.SIGKILL)
    engine.wait(20)
    engine.stdout.close()
    assert wait_gone(*pids) == []
