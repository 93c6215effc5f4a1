"""Bytes in and bytes out.  Nothing here blocks the event loop, whatever the client does or fails to do.

pygls reads standard input in the thread pool that handlers use and writes on the event loop, so a busy pool stops the
reading and a client that stops reading stops the server.  Here each direction of stdio has a daemon thread of its own.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

_CHUNK = 1 << 16
MAX_HEADER = 1 << 16
MAX_MESSAGE = 256 << 20
"""A message longer than this is skipped, not stored."""
MAX_BACKLOG = 64 << 20
"""What a client may leave unread before it counts as gone."""


class Outbox:
    """Sends in a thread of its own.  ``on_failure`` is called once, in that thread, when the client is gone."""

    def __init__(self, send: Callable[[bytes], object], on_failure: Callable[[str], object]) -> None:
        self._send = send
        self._on_failure = on_failure
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._backlog = 0
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="pallas-lsp-output", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        if self._failed:
            return
        with self._lock:
            self._backlog += len(data)
            too_much = self._backlog > MAX_BACKLOG
        if too_much:
            self._fail(f"the client has left {MAX_BACKLOG >> 20} MiB unread")
            return
        self._queue.put(data)

    def close(self, timeout: float = 2.0) -> None:
        """Send what is left, for at most ``timeout`` seconds."""
        self._queue.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            if self._failed:
                continue
            try:
                self._send(data)
            except (OSError, ValueError) as error:
                self._fail(f"the client no longer reads ({error})")
            with self._lock:
                self._backlog -= len(data)

    def _fail(self, reason: str) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(reason)


def take_stdio() -> tuple[int, int]:
    """Descriptors of the client's stream.  Descriptors 0 and 1 are pointed elsewhere, so that neither a stray print
    nor a child process can touch the stream."""
    sys.stdout.flush()
    source, target = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(source, os.O_BINARY)
        msvcrt.setmode(target, os.O_BINARY)
    return source, target


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_in_thread(descriptor: int, loop: asyncio.AbstractEventLoop) -> asyncio.StreamReader:
    """A reader that a daemon thread feeds; a thread that is stuck in ``os.read`` does not delay the exit."""
    reader = asyncio.StreamReader(limit=MAX_HEADER, loop=loop)

    def run() -> None:
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            while True:
                try:
                    data = os.read(descriptor, _CHUNK)
                except OSError:
                    data = b""
                if not data:
                    loop.call_soon_threadsafe(reader.feed_eof)
                    return
                loop.call_soon_threadsafe(reader.feed_data, data)

    threading.Thread(target=run, name="pallas-lsp-input", daemon=True).start()
    return reader


async def read_messages(reader: asyncio.StreamReader, complain: Callable[[str], None]) -> AsyncIterator[bytes]:
    """The bodies of the messages in a stream, until its end.

    Header names are read in any case, as RFC 9110 has them, and lines may end in a bare line feed.  What is no header
    is skipped.
    """
    length: int | None = None
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            complain(f"skipped {MAX_HEADER} bytes that are no header")
            continue
        if not line:
            return
        header = line.strip()
        if header:
            name, colon, value = header.partition(b":")
            if not colon:
                complain("skipped a line that is no header")
            elif name.strip().lower() == b"content-length":
                value = value.strip()
                length = int(value) if value.isdigit() and len(value) < 16 else None
                if length is None:
                    complain("skipped a Content-Length that is no number")
            continue
        if length is None:
            continue
        try:
            if length > MAX_MESSAGE:
                complain(f"skipped a message of {length} bytes; the limit is {MAX_MESSAGE}")
                await _skip(reader, length)
            elif length:
                yield await reader.readexactly(length)
        except asyncio.IncompleteReadError:
            return
        length = None


async def _skip(reader: asyncio.StreamReader, length: int) -> None:
    while length:
        data = await reader.read(min(length, _CHUNK))
        if not data:
            return
        length -= len(data)
