"""A language client over the raw stream: it sends what no editor should, and reads when a test says so."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 60.0
EXIT_SECONDS = 40.0
"""Generous, for a busy machine; what would block an exit here blocks it for much longer."""


class RawClient:
    """Bytes to the server; messages from it, in a thread, so that reading can be timed or left."""

    def __init__(
        self, folder: Path, command: Sequence[str], environment: Mapping[str, str], *, read: bool = True, **how: Any
    ) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **how
        )
        self.messages: queue.Queue[dict | None] = queue.Queue()
        self.kept: list[dict] = []
        self.stderr = b""
        self._next_id = 100
        if read:
            self.read()
        threading.Thread(target=self._drain, daemon=True).start()

    def read(self) -> None:
        """Begin to read what the server sends."""
        threading.Thread(target=self._read, daemon=True).start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            header = stream.readline()
            if not header:
                self.closed()
                return
            length = int(header.split(b":")[1])
            assert stream.readline() == b"\r\n"
            self.received(json.loads(stream.read(length)))

    def closed(self) -> None:
        """The server closed its stream; called in the reading thread."""
        self.messages.put(None)

    def received(self, message: dict) -> None:
        """A message came; called in the reading thread."""
        self.messages.put(message)

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def body(self, body: bytes, header: bytes = b"Content-Length: %d\r\n\r\n") -> None:
        self.raw(header % len(body) + body)

    def send(self, **message: object) -> None:
        self.body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def request(self, method: str, params: object = None, timeout: float = PATIENCE) -> dict:
        self._next_id += 1
        self.send(id=self._next_id, method=method, params=params)
        return self.response(self._next_id, timeout)

    def response(self, number: object, timeout: float = PATIENCE) -> dict:
        return self.wait(lambda m: m.get("id", "none") == number and "method" not in m, timeout)

    def wait(self, wanted, timeout: float = PATIENCE) -> dict:
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        end = time.monotonic() + timeout
        while True:
            try:
                message = self.messages.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing came; kept {self.kept}, stderr {self.stderr!r}") from None
            assert message is not None, f"the server ended: {self.stderr!r}"
            if wanted(message):
                return message
            self.kept.append(message)

    def initialize(self, process_id: int | None = None, **capabilities: object) -> dict:
        params = {
            "processId": process_id,
            "rootUri": self.folder.as_uri(),
            "capabilities": capabilities,
            "initializationOptions": {"trusted": True},
        }
        result = self.request("initialize", params)
        self.send(method="initialized", params={})
        return result

    def open(self, text: str, name: str = "a.py", version: int = 1) -> str:
        uri = (self.folder / name).as_uri()
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.send(method="textDocument/didOpen", params={"textDocument": item})
        return uri

    def diagnostics(self, timeout: float = PATIENCE) -> dict:
        return self.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics", timeout)["params"]

    def end(self) -> int:
        start = time.monotonic()
        assert "result" in self.request("shutdown")
        self.send(method="exit")
        code = self.process.wait(EXIT_SECONDS)
        assert time.monotonic() - start < EXIT_SECONDS
        return code

    def kill(self) -> None:
        """End the server, whatever it is at."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
