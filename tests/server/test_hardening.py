"""A server process and a client that sends what no editor should, over the raw stream."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from raw_client import EXIT_SECONDS, PATIENCE, RawClient

SERVER = Path(__file__).parent / "fake_server.py"
PROJECT = Path(__file__).parent.parent.parent


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT), "PALLAS_LSP_TEST_TRUST": str(folder / "trust.json")}


class FakeServerClient(RawClient):
    """A client of a server with a fake engine."""

    def __init__(self, folder: Path, *, read: bool = True) -> None:
        super().__init__(folder, [sys.executable, str(SERVER)], environment(folder), read=read)

    def works(self) -> None:
        """The server still answers and checks."""
        self.open("a fault\n", f"works{self._next_id}.py")
        assert len(self.diagnostics()["diagnostics"]) == 1


@pytest.fixture
def client(tmp_path):
    client = FakeServerClient(tmp_path)
    yield client
    client.kill()


def popups(client: RawClient) -> list[dict]:
    return [m for m in client.kept if m.get("method", "").startswith("window/showMessage")]


def test_requests_that_cannot_be_served_get_an_error(client):
    refused = {
        "id": 1, "method": "textDocument/hover", "params": {}
    }, -32002  # fmt: skip
    client.send(**refused[0])
    assert client.response(1)["error"]["code"] == refused[1]
    client.send(method="textDocument/didOpen", params={})  # before the session: ignored
    client.initialize()
    cases = [
        ({"id": 2, "method": "initialize", "params": {"capabilities": {}}}, -32600),
        ({"id": 3, "method": "no/such", "params": {}}, -32601),
        ({"id": 4, "method": "$/unknown"}, -32601),
        ({"id": "five", "method": "textDocument/hover", "params": {"position": 7}}, -32602),
        ({"id": 6, "method": "textDocument/hover"}, -32602),
        ({"id": 7, "method": "textDocument/codeAction", "params": [1, 2]}, -32602),
        ({"id": 8, "method": "codeAction/resolve", "params": {"title": "t", "data": {"uri": 3}}}, -32602),
        ({"id": 9, "method": 12}, -32600),
        ({"id": 10, "method": ["textDocument/hover"]}, -32600),
        ({"id": 11, "method": "workspace/executeCommand", "params": {"command": "pallas-lsp.checkFile"}}, -32602),
    ]
    for message, code in cases:
        client.send(**message)
        assert client.response(message["id"])["error"]["code"] == code, message
    for message in ({"id": None, "method": "shutdown"}, {"id": 1.5, "method": "shutdown"}, {"id": True, "method": "x"}):
        client.send(**message)
        assert client.response(None)["error"]["code"] == -32600
    client.works()
    assert "result" in client.request("shutdown")
    assert client.request("textDocument/hover", {})["error"]["code"] == -32600
    client.send(method="exit")
    assert client.process.wait(EXIT_SECONDS) == 0
    assert popups(client) == []


def test_what_is_no_message_is_skipped(client):
    client.initialize()
    for body in (b"{", b"[]", b"3", b'""', b"\xff\xfe", b"[" * 100_000, b'{"jsonrpc": "1.0", "id": 3}', b"null"):
        client.body(body)
        assert client.response(None if b"id" not in body else 3)["error"]["code"] in (-32700, -32600)
    for garbage in (b"\r\n\r\n", b"no header\r\n\r\n", b"Content-Length: -4\r\n\r\n", b"Content-Length: x\r\n\r\n"):
        client.raw(garbage)
    client.raw(b"x" * 200_000 + b"\n")
    client.raw(b"Content-Length: 0\r\n\r\n")
    client.works()
    assert popups(client) == []
    assert client.end() == 0


def test_headers_in_any_case_and_order(client):
    client.initialize()
    message = b'{"jsonrpc":"2.0","id":1,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///x"},'
    message += b'"position":{"line":0,"character":0}}}'
    for header in (
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\r\nContent-Type: application/vscode-jsonrpc; charset=utf8\r\n\r\n",
        b"Content-Type: x\r\nX-Other: y\r\nContent-Length:   %d  \r\n\r\n",
        b"Content-Length: %d\n\n",
    ):
        client.body(message, header)
        assert client.response(1)["result"] is None
    assert client.end() == 0


def test_a_message_in_small_pieces(client):
    client.initialize()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "no/such"}).encode()
    for byte in b"Content-Length: %d\r\n\r\n%s" % (len(body), body):
        client.raw(bytes([byte]))
    assert client.response(1)["error"]["code"] == -32601
    assert client.end() == 0


def test_unreadable_notifications_and_responses_change_nothing(client):
    client.initialize()
    methods = ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/setTrace",
               "workspace/didChangeWatchedFiles", "pallas/didChangeTrust", "$/cancelRequest", "no/such",
               "workspace/didChangeConfiguration", "window/workDoneProgress/cancel", "initialized"]  # fmt: skip
    for method in methods:
        for params in (None, [], 3, {"textDocument": 4}, {"token": "x", "id": {}, "settings": [[]]}):
            client.send(method=method, params=params)
    for response in ({"id": 1, "result": 3}, {"id": "x", "error": 4}, {"id": [], "result": None}, {"result": 3}):
        client.send(**response)
    client.works()
    assert popups(client) == []
    assert client.end() == 0


def test_random_messages_never_end_the_server(client):
    client.initialize()
    source = random.Random(7)
    methods = ["textDocument/hover", "textDocument/codeAction", "codeAction/resolve", "workspace/executeCommand",
               "textDocument/didChange", "textDocument/didOpen", "workspace/didChangeWorkspaceFolders"]  # fmt: skip
    uri = client.open("a fault\n")
    client.diagnostics()
    valid = {
        "textDocument": {"uri": uri, "version": 2, "languageId": "python", "text": "fault"},
        "position": {"line": 0, "character": 2},
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 99}},
        "context": {"diagnostics": []},
        "contentChanges": [{"text": "fault"}],
        "event": {"added": [], "removed": []},
        "title": "t",
        "command": "pallas-lsp.cancel",
        "arguments": [],
        "data": {"uri": uri, "version": 2, "finding": "x", "fix": 0},
    }
    odd = [
        None,
        -1,
        2**40,
        1e300,
        "",
        "\ud800",
        "\x00",
        [],
        {},
        [[]],
        {"uri": "%%%"},
        {"line": -1, "character": -5},
        True,
    ]
    sent = []
    for number in range(1000, 1300):
        params = {
            key: source.choice(odd) if source.random() < 0.15 else value
            for key, value in valid.items()
            if source.random() < 0.95
        }
        method = source.choice(methods)
        if method.startswith("textDocument/did"):
            client.send(method=method, params=params)
        else:
            client.send(id=number, method=method, params=params)
            sent.append(number)
    for number in sent:
        client.response(number, 20)
    client.works()
    assert client.end() == 0


def test_a_newer_clients_capabilities_do_not_keep_it_out(client):
    result = client.initialize(
        textDocument={"hover": {"contentFormat": [["future"]]}, "publishDiagnostics": {"relatedInformation": True}},
        workspace={"symbol": {"symbolKind": {"valueSet": [1, 2, 999]}}},
        window=7,
    )
    assert "result" in result
    client.works()
    assert client.end() == 0


def test_a_stray_print_does_not_reach_the_stream(client):
    client.initialize()
    client.open("print fault\n")
    assert len(client.diagnostics()["diagnostics"]) == 1
    client.works()
    assert client.end() == 0
    assert b"a stray print" in client.stderr
    assert b"and one past Python" in client.stderr


def test_an_engine_that_breaks_is_logged_and_the_server_goes_on(client):
    client.initialize()
    client.open("crash\n")
    logged = client.wait(lambda m: m.get("method") == "window/logMessage" and "the engine broke" in str(m))
    assert "Please report this" in logged["params"]["message"]
    client.works()
    assert popups(client) == []
    assert client.end() == 0


def test_requests_are_answered_while_checks_run(client):
    client.initialize()
    uri = client.open("sleep 20\n")
    start = time.monotonic()
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
    assert client.request("textDocument/hover", place)["result"] is None
    assert time.monotonic() - start < 10
    assert client.end() == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_the_server_and_its_children(client, name):
    client.initialize()
    client.open("child\n")
    client.diagnostics()
    child = int((client.folder / "a.pid").read_text())
    client.process.send_signal(getattr(signal, name))
    assert client.process.wait(EXIT_SECONDS) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_end_of_input_ends_the_server(client):
    client.initialize()
    client.open("sleep 30\n")
    client.process.stdin.close()
    assert client.process.wait(EXIT_SECONDS) == 1


def test_exit_without_shutdown_is_an_error(client):
    client.initialize()
    client.send(method="exit")
    assert client.process.wait(EXIT_SECONDS) == 1


def test_exit_before_initialize(client):
    client.send(method="exit")
    assert client.process.wait(EXIT_SECONDS) == 1
    assert b"Traceback" not in client.stderr


def test_stuck_threads_do_not_delay_the_exit(client):
    client.initialize()
    client.open("stuck thread\n")
    client.diagnostics()
    assert client.end() == 0


def test_the_death_of_the_client_ends_the_server(client):
    editor = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    client.initialize(editor.pid)
    client.works()
    editor.kill()
    editor.wait()
    editor.stdin.close()
    assert client.process.wait(20) == 1


def test_a_client_in_another_container_is_not_watched(client):
    client.initialize(2**22 - 1)
    time.sleep(1.5)
    client.works()
    assert client.end() == 0


def test_a_client_that_does_not_read_stops_nobody(tmp_path):
    client = FakeServerClient(tmp_path, read=False)
    try:
        client.send(id=1, method="initialize", params={"capabilities": {}, "initializationOptions": {"trusted": True}})
        client.send(method="initialized", params={})
        for number in range(10):
            client.open("fault\n" * 200, f"{number}.py")
        time.sleep(1.0)
        client.send(id=2, method="shutdown")
        client.send(method="exit")
        assert client.process.wait(EXIT_SECONDS) in (0, 1)
    finally:
        client.process.kill()
        client.process.wait()


def test_a_large_document(client):
    client.initialize()
    text = "x = 1  # \U0001f600\n" * 150_000 + "a fault\n"
    start = time.monotonic()
    uri = client.open(text)
    got = client.diagnostics(PATIENCE)
    assert got["diagnostics"][0]["range"]["start"]["line"] == 150_000
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "\n" + text}]}
    client.send(method="textDocument/didChange", params=change)
    place = {"textDocument": {"uri": uri}, "position": {"line": 5, "character": 1}}
    client.request("textDocument/hover", place)
    assert client.diagnostics(PATIENCE)["diagnostics"][0]["range"]["start"]["line"] == 150_001
    assert time.monotonic() - start < PATIENCE
    assert client.end() == 0


def test_tcp(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--tcp", str(port)], stderr=subprocess.PIPE, env=environment(tmp_path)
    )
    try:
        assert process.stderr is not None
        assert b"Waiting for a client" in process.stderr.readline()
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
            stream = connection.makefile("rwb")

            def send(**message):
                body = json.dumps({"jsonrpc": "2.0", **message}).encode()
                stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                stream.flush()

            def receive():
                length = int(stream.readline().split(b":")[1])
                stream.readline()
                return json.loads(stream.read(length))

            send(id=1, method="initialize", params={"capabilities": {}, "processId": None})
            assert receive()["result"]["serverInfo"]["name"] == "pallas-lsp"
            send(method="initialized", params={})
            send(id=2, method="shutdown")
            assert receive()["id"] == 2
            send(method="exit")
            assert process.wait(EXIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
