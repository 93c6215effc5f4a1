"""Starting and ending the language server."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from contextlib import suppress

from pallas_lsp.server import logs
from pallas_lsp.server.app import PallasServer
from pallas_lsp.server.features import register
from pallas_lsp.server.lifetime import exit_process, on_signals
from pallas_lsp.server.transport import MAX_BACKLOG, Outbox, read_in_thread, read_messages, take_stdio, write_all

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0


def serve(
    tcp: tuple[str, int] | None = None,
    log_file: str | None = None,
    log_level: str = "info",
    python: str | None = None,
    make_server: Callable[[], PallasServer] = PallasServer,
) -> int:
    """Serve one client and end the process: 0 after ``shutdown`` and ``exit``, else 1.

    Raises OSError where the log file or the address cannot be used.
    """
    console = logs.start(log_file, log_level)
    make = functools.partial(_make, make_server, console, log_level, python)
    # asyncio.run would wait for every thread of the loop's executor before it returns, stuck ones too.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    exit_process(loop.run_until_complete(_serve_tcp(make, *tcp) if tcp else _serve_stdio(make)))


def _make(
    make_server: Callable[[], PallasServer], console: logging.Handler, log_level: str, python: str | None
) -> PallasServer:
    server = make_server()
    server.configuration.preset(log_level=log_level, interpreter=python)
    register(server, console)
    return server


async def _serve_stdio(make: Callable[[], PallasServer]) -> int:
    source, target = take_stdio()
    loop = asyncio.get_running_loop()
    server = make()

    def lost(reason: str) -> None:
        loop.call_soon_threadsafe(server.stop, 1, reason)

    outbox = Outbox(functools.partial(write_all, target), lost)
    try:
        return await run_session(server, read_in_thread(source, loop), outbox)
    finally:
        outbox.close()


async def _serve_tcp(make: Callable[[], PallasServer], host: str, port: int) -> int:
    """Serve the first client that connects."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = loop.create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if first.done():
            writer.close()
        else:
            first.set_result((reader, writer))

    listener = await asyncio.start_server(connected, host, port)
    addresses = ", ".join(str(socket.getsockname()) for socket in listener.sockets)
    logger.info("Waiting for a client on %s", addresses)
    reader, writer = await first
    listener.close()
    server = make()
    try:
        return await run_session(server, reader, SocketOutbox(writer, functools.partial(server.stop, 1)))
    finally:
        with suppress(Exception):
            async with asyncio.timeout(2.0):
                await writer.drain()
        writer.close()


class SocketOutbox:
    """Sends over a socket; asyncio keeps what the client has not read yet."""

    def __init__(self, writer: asyncio.StreamWriter, on_failure: Callable[[str], object]) -> None:
        self._writer = writer
        self._on_failure = on_failure

    def write(self, data: bytes) -> None:
        if self._writer.transport.get_write_buffer_size() > MAX_BACKLOG:
            self._on_failure(f"the client has left {MAX_BACKLOG >> 20} MiB unread")
        elif not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


async def run_session(server: PallasServer, reader: asyncio.StreamReader, outbox: Outbox | SocketOutbox) -> int:
    """Serve a client until it says ``exit``, its stream ends, it dies, or a signal comes.  Returns the exit code."""
    loop = asyncio.get_running_loop()
    server.exit_code = loop.create_future()
    server.protocol.set_writer(outbox)
    on_signals(loop, lambda name: server.stop(1, f"signal {name}"))
    reading = asyncio.ensure_future(_read(server, reader))
    code = await server.exit_code
    reading.cancel()
    with suppress(Exception):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await server.close()
    return code


async def _read(server: PallasServer, reader: asyncio.StreamReader) -> None:
    async for body in read_messages(reader, lambda text: logger.warning("Input: %s", text)):
        server.protocol.receive(body)
        await asyncio.sleep(0)  # let what this message started run before the next is read
    server.stop(0 if server.protocol.is_shut_down else 1, "the client closed the connection")
