"""What a worker prints, line by line, in a bounded amount."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

Log = Callable[[str], None]

_LONGEST = 4000
_LINES = 500
_SECONDS = 5.0
_PATIENCE = 0.2


class LogLines:
    """Cuts a stream into lines for the log.

    User code may print without end: a line is cut at 4000 bytes, and beyond 500 lines in 5 seconds they are counted
    rather than passed on, so that the reader stays ahead and the process never waits for us.  A line without an end is
    passed on after a moment.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._began = time.monotonic()
        self._passed = 0
        self._dropped = 0
        self._unfinished = b""
        self._timer: asyncio.TimerHandle | None = None
        self._end_of_flood: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        if time.monotonic() - self._began > _SECONDS:
            self._tell_dropped()
            self._began, self._passed = time.monotonic(), 0
        if self._passed >= _LINES:
            self._drop(data.count(b"\n"))
            return
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = self._unfinished + lines[0]
            self._unfinished = b""
        self._unfinished = (self._unfinished + rest)[:_LONGEST]
        for line in lines:
            self._tell(line)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unfinished:
            self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self._flush)

    def close(self) -> None:
        for timer in (self._timer, self._end_of_flood):
            if timer is not None:
                timer.cancel()
        self._flush()
        self._tell_dropped()

    def _flush(self) -> None:
        if self._unfinished:
            self._tell(self._unfinished)
            self._unfinished = b""

    def _tell(self, line: bytes) -> None:
        if self._passed >= _LINES:
            self._drop(1)
            return
        self._passed += 1
        self._log(line[:_LONGEST].decode("utf-8", "backslashreplace").rstrip("\r"))

    def _drop(self, lines: int) -> None:
        if not self._dropped:  # told when the five seconds are over, also where nothing more is printed
            rest = max(0.0, self._began + _SECONDS - time.monotonic())
            self._end_of_flood = asyncio.get_running_loop().call_later(rest, self._tell_dropped)
        self._dropped += lines

    def _tell_dropped(self) -> None:
        if self._dropped:
            self._log(f"... and {self._dropped} more lines")
            self._dropped = 0
        if self._end_of_flood is not None:
            self._end_of_flood.cancel()
            self._end_of_flood = None
