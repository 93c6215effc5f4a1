"""A child process with line-wise streams, whose end is noticed at once even where something it started lives on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

from pallas_lsp.engine.log import Log, LogLines

_LAST_WORDS = 1.0
"""Seconds in which what a dead process had written must arrive."""


class Child(asyncio.SubprocessProtocol):
    """``on_line`` gets each line of standard output, ``on_end`` is called once when there will be no more.

    asyncio's own ``Process.wait`` waits for the pipes too, and a process that the child started may hold them open.
    """

    def __init__(self, on_line: Callable[[bytes], None], on_end: Callable[[], None], log: Log) -> None:
        self._on_line = on_line
        self._on_end = on_end
        self._log = LogLines(log)
        self._parts: list[bytes] = []
        self._over = asyncio.Event()
        self._exited = False
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(
        cls,
        command: list[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        on_line: Callable[[bytes], None],
        on_end: Callable[[], None],
        log: Log,
    ) -> Child:
        """Start a process at the head of a group of its own; raises OSError or ValueError."""
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        _, child = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(on_line, on_end, log), *command, env=environment, cwd=folder, **options
        )
        return child

    # -- asyncio's side ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._log.feed(data)
            return
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._parts, whole[0]))
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        for line in whole:
            self._on_line(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 1 and self._exited:
            self._finish()

    def process_exited(self) -> None:
        self._exited = True
        self.kill_group()
        assert self._transport is not None
        if self._transport.get_pipe_transport(1) is None:
            self._finish()
        else:
            asyncio.get_running_loop().call_later(_LAST_WORDS, self._finish)

    def _finish(self) -> None:
        if self._over.is_set():
            return
        self._over.set()
        self._log.close()
        self._on_end()
        assert self._transport is not None
        self._transport.close()

    # -- ours -------------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        assert self._transport is not None
        return self._transport.get_pid()

    @property
    def returncode(self) -> int | None:
        assert self._transport is not None
        return self._transport.get_returncode()

    def write(self, data: bytes) -> None:
        """Send without waiting; nothing where the process is gone."""
        pipe = self._input()
        if pipe is not None and not pipe.is_closing():
            pipe.write(data)

    def close_input(self) -> None:
        pipe = self._input()
        if pipe is not None:
            pipe.close()

    def _input(self) -> asyncio.WriteTransport | None:
        assert self._transport is not None
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))

    async def wait(self) -> None:
        """Wait until the process ended and all that it wrote was received."""
        await self._over.wait()

    def kill_group(self) -> None:
        """Kill the process and what is in its group."""
        if sys.platform == "win32":
            if not self._exited:
                ask = ["taskkill", "/F", "/T", "/PID", str(self.pid)]
                subprocess.run(ask, check=False, capture_output=True)
        else:
            kill_group(self.pid)


def kill_group(group: int) -> None:
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
