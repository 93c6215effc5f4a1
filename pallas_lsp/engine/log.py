"""What a worker prints, line by line, in a bounded amount."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

Log = Callable[[str], None]

_LONGEST = 4000
_LINES = 500
_SECONDS = 5.0


async def pump(stream: asyncio.StreamReader, log: Log) -> None:
    """Pass lines on until the stream ends.

    User code may print without end: a line is cut at 4000 bytes, and beyond 500 lines in 5 seconds they are counted
    rather than passed on, so that the reader stays ahead and the process never waits for us.
    """
    rest = b""
    began, passed, dropped = time.monotonic(), 0, 0
    while data := await stream.read(1 << 16):
        if time.monotonic() - began > _SECONDS:
            if dropped:
                log(f"... and {dropped} more lines")
            began, passed, dropped = time.monotonic(), 0, 0
        if passed >= _LINES:
            dropped += data.count(b"\n")
            rest = data[data.rfind(b"\n") + 1 :][:_LONGEST]
            continue
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[:_LONGEST]
        for line in lines[: _LINES - passed]:
            log(line[:_LONGEST].decode("utf-8", "backslashreplace").rstrip("\r"))
        dropped += max(0, len(lines) - (_LINES - passed))
        passed += min(len(lines), _LINES - passed)
    if rest:
        log(rest.decode("utf-8", "backslashreplace"))
    if dropped:
        log(f"... and {dropped} more lines")
