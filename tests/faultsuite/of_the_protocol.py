"""Faults of the client: messages that no editor should send, and an editor that does not listen."""

from __future__ import annotations

import time

from kernels import good
from scene import Scene
from suite import PATIENCE, Faults, Steps

FAULTS = Faults("The protocol")


@FAULTS.add("a frame that holds no JSON", "Refused a message: The message is not JSON")
def no_json(scene: Scene) -> Steps:
    scene.editor.body(b'{"jsonrpc": "2.0", "id": 1, "method"')
    yield


@FAULTS.add("a frame without a readable length", "Input: skipped a Content-Length that is no number")
def no_length(scene: Scene) -> Steps:
    scene.editor.raw(b"Content-Length: ten\r\n\r\n")
    yield


@FAULTS.add("text that is no frame (100 kB)", "Input: skipped 65536 bytes that are no header")
def no_frame(scene: Scene) -> Steps:
    scene.editor.raw(b"x" * 100_000 + b"\r\n")
    yield


@FAULTS.add("wrong parameters of a request", "Refused a message: Invalid Params")
def wrong_parameters(scene: Scene) -> Steps:
    answer = scene.editor.request("textDocument/codeAction", {"position": 7})
    assert answer["error"]["code"] == -32602
    yield


@FAULTS.add("wrong parameters of a notification", "Ignored an invalid textDocument/didChange")
def wrong_notification(scene: Scene) -> Steps:
    scene.editor.send(method="textDocument/didChange", params={"textDocument": 4})
    yield


@FAULTS.add("a wrong setting", "timeLimit must be a number of seconds above 0, not 'long'")
def wrong_setting(scene: Scene) -> Steps:
    scene.later(scene.editor.set)
    scene.editor.set(timeLimit="long")
    yield


@FAULTS.add("headers in lower case")
def lower_case_headers(scene: Scene) -> Steps:
    usual = scene.editor.header
    scene.later(lambda: setattr(scene.editor, "header", usual))
    scene.editor.header = b"content-length: %d\r\ncontent-type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n"
    scene.type(good(top="# in lower case\n"))
    scene.see_it_clean()
    yield


@FAULTS.add("a storm of cancelled requests (400) and edits (100)")
def cancel_storm(scene: Scene) -> Steps:
    editor, asked = scene.editor, []
    where = {"textDocument": {"uri": scene.uri}, "position": {"line": 11, "character": 12}}
    actions = {**where, "range": {"start": where["position"], "end": where["position"]}, "context": {"diagnostics": []}}
    command = {"command": "pallas-lsp.checkFile", "arguments": [scene.uri]}
    requests = [
        ("textDocument/hover", where),
        ("textDocument/codeAction", actions),
        ("textDocument/codeLens", where),
        ("workspace/executeCommand", command),
    ]
    for number in range(400):
        name, (method, params) = f"storm {number}", requests[number % len(requests)]
        editor.send(id=name, method=method, params=params)
        editor.send(method="$/cancelRequest", params={"id": name})
        asked.append(name)
        if number % 4 == 0:
            scene.type(good(top=f"# edit {number}\n"))
    editor.until(lambda: {m.get("id") for _, m in editor.history if "method" not in m}.issuperset(asked), PATIENCE)
    scene.see_it_clean()
    yield


@FAULTS.add("a client that stops reading for 2 s", silent=True)
def client_stops_reading(scene: Scene) -> Steps:
    editor = scene.editor
    editor.reads.clear()
    scene.later(editor.reads.set)
    where = {"textDocument": {"uri": scene.uri}, "position": {"line": 11, "character": 12}}
    asked = [f"unread {number}" for number in range(2000)]  # their answers are more than a pipe holds
    for name in asked:
        editor.send(id=name, method="textDocument/hover", params=where)
    ran = scene.folder / "ran"
    scene.type(good(main=f"open({str(ran)!r}, 'w').close()"))
    began = time.monotonic()
    while not ran.exists():  # checks go on though nobody reads
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.02)
    time.sleep(max(0.0, began + 2.0 - time.monotonic()))
    assert not {m.get("id") for _, m in editor.history} & set(asked[1000:])
    yield
    editor.reads.set()
    editor.until(lambda: {m.get("id") for _, m in editor.history}.issuperset(asked), PATIENCE)
