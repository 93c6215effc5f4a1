"""The protocol's stream: descriptors of its own, and one JSON object a line."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

CRASHED = 1
CANCELLED = 2
OUT_OF_MEMORY = 3
EXITED = 4
NO_FOLDER = 6
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CHUNK = 1 << 16


def take_over() -> tuple[int, int]:
    """Keep standard input and output for the protocol; what user code reads is empty, what it prints is the log."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing


class Lines:
    """Cuts a stream of bytes into whole lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._parts, whole[0]))
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return whole


class Writer:
    """Writes messages; usable from several threads, and whole even where a pipe takes a line in parts."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, separators=(",", ":"), default=str).encode("utf-8", "backslashreplace")
        rest = memoryview(line + b"\n")
        with self._lock:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def close(self) -> None:
        os.close(self._descriptor)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, request: Any, result: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "id": request, "result": result})

    def fail(self, request: Any, error: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "id": request, "error": error})


def error(code: int, message: str, **data: Any) -> dict[str, Any]:
    return {"code": code, "message": message, "data": data}


class BadMessage(Exception):  # noqa: N818
    """A line that is no request and no notification; ``error`` is the answer to it."""

    def __init__(self, answer: dict[str, Any], request: Any = None) -> None:
        super().__init__(answer["message"])
        self.error = answer
        self.request = request


def parse(line: bytes) -> tuple[Any, str, dict[str, Any]]:
    """(id or None, method, params) of a line; raises BadMessage."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as reason:
        raise BadMessage(error(PARSE_ERROR, f"not a JSON object: {reason}")) from reason
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        raise BadMessage(error(INVALID_REQUEST, "neither a request nor a notification"))
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise BadMessage(error(INVALID_PARAMS, "params must be an object"), message.get("id"))
    return message.get("id"), message["method"], params
