"""The protocol as an engine of another make would speak it: raw lines to a raw process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from worker_helpers import FAKE, wait_gone

PROGRAM = FAKE.replace("tests/worker_process/fake_worker", "pallas_lsp/worker")


class Raw:
    def __init__(self, python: str, program: str = FAKE, **environment: str) -> None:
        import os

        self.process = subprocess.Popen(
            [python, "-u", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )

    def send(self, *messages: object) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def event(self) -> dict:
        """The next message but for ``started``."""
        message = self.receive()
        return self.receive() if message.get("method") == "started" else message

    def request(self, number: object, method: str, **params: object) -> dict:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def initialize(self) -> dict:
        self.send(self.request(1, "initialize", protocol=1, preimport=[]))
        return self.receive()["result"]

    def run(self, number: object, code: str) -> dict:
        return self.request(number, "run", path="/x.py", documents={"/x.py": code})


@pytest.fixture
def raw(server_python, fork):
    worker = Raw(server_python, **({} if fork else {"PALLAS_LSP_FORK": "0"}))
    yield worker
    worker.process.stdin.close()
    try:
        worker.process.wait(10)
    finally:
        worker.process.kill()
        worker.process.stdout.close()
        worker.process.wait()


def test_before_initialize_nothing_else_is_served(raw):
    raw.send(raw.run(7, "pass"), {"jsonrpc": "2.0", "method": "cancel", "params": {}}, b"", b"no json", b"[1]")
    assert raw.receive()["error"]["code"] == -32600
    assert raw.receive()["error"]["code"] == -32700
    assert raw.receive()["error"]["code"] == -32600
    assert raw.initialize()["protocol"] == 1


def test_another_protocol_is_refused_and_the_right_one_taken_after_it(raw):
    raw.send(raw.request(1, "initialize", protocol=2))
    refusal = raw.receive()["error"]
    assert refusal["data"] == {"protocol": 1}
    assert "not 2" in refusal["message"]
    assert raw.initialize()["protocol"] == 1


def test_messages_that_are_no_requests(raw):
    raw.initialize()
    deep = b'{"method":' + b"[" * 100_000 + b"}"
    raw.send(b"\xff\xfe", b"{", b"null", b'{"id": 3}', b'{"id": 4, "method": "run", "params": [1]}', deep)
    codes = [raw.receive()["error"]["code"] for _ in range(6)]
    assert codes == [-32700, -32700, -32600, -32600, -32602, -32700]
    raw.send(raw.request(5, "no such method"), raw.request(6, "shutdown"))
    assert raw.receive()["error"]["code"] == -32601
    assert raw.receive() == {"jsonrpc": "2.0", "id": 6, "result": {}}
    assert raw.process.wait(10) is not None


def test_several_messages_in_one_write_and_one_in_several(raw):
    line = json.dumps(raw.request("one", "initialize", protocol=1)).encode() + b"\n"
    for part in (line[:10], line[10:60]):
        raw.process.stdin.write(part)
        raw.process.stdin.flush()
    rest = line[60:] + json.dumps(raw.run("two", "emit('capture', {})")).encode() + b"\n"
    raw.process.stdin.write(rest)
    raw.process.stdin.flush()
    assert raw.receive()["id"] == "one"
    assert raw.event() == {"jsonrpc": "2.0", "method": "capture", "params": {"run": "two"}}
    answer = raw.receive()
    assert answer["id"] == "two"
    assert answer["result"]["seconds"] >= 0


def test_cancel_answers_the_run(raw):
    raw.initialize()
    raw.send(raw.run(2, "emit('stage', {'stage': 'drive'})\nwhile True: pass"))
    assert raw.event()["method"] == "stage"
    raw.send({"jsonrpc": "2.0", "method": "cancel", "params": {"run": 99}})
    raw.send({"jsonrpc": "2.0", "method": "cancel", "params": {"run": 2}})
    answer = raw.receive()
    assert (answer["id"], answer["error"]["code"]) == (2, 2)


def test_shutdown_answers_running_runs_first(raw):
    raw.initialize()
    raw.send(raw.run(2, "emit('stage', {'stage': 'drive'})\nwhile True: pass"))
    assert raw.event()["method"] == "stage"
    raw.send(raw.request(3, "shutdown"))
    first, second = raw.receive(), raw.receive()
    assert (first["id"], first["error"]["code"]) == (2, 2)
    assert second == {"jsonrpc": "2.0", "id": 3, "result": {}}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_end_of_the_input_ends_everything(raw):
    raw.initialize()
    raw.send(raw.run(2, "import os\nemit('capture', {'pid': os.getpid()})\nwhile True: pass"))
    pid = raw.event()["params"]["pid"]
    raw.process.stdin.close()
    raw.process.wait(10)
    assert wait_gone(pid) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the zygote is Linux only")
def test_sigterm_ends_a_zygote_and_its_runs(server_python):
    raw = Raw(server_python)
    raw.initialize()
    raw.send(raw.run(2, "import os\nemit('capture', {'pid': os.getpid()})\nwhile True: pass"))
    pid = raw.event()["params"]["pid"]
    raw.process.terminate()
    assert raw.receive()["error"]["code"] == 2
    assert raw.process.wait(10) == 0
    assert wait_gone(pid) == []
    raw.process.stdin.close()
    raw.process.stdout.close()


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9"])
def test_an_old_python_says_so(version, tmp_path):
    """The program is plain enough for an old Python to read; here ours pretends to be one."""
    shim = tmp_path / "shim.py"
    shim.write_text(
        f"import runpy, sys\nsys.version_info = ({version.replace('.', ', ')}, 1)\n"
        f"runpy.run_path({PROGRAM!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, str(shim)], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["data"] == {"python": f"{version}.1"}
