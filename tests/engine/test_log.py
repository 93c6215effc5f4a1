"""What workers print, in the log."""

from __future__ import annotations

import asyncio

from pallas_lsp.engine.log import LogLines


async def test_lines_across_chunks():
    told: list[str] = []
    lines = LogLines(told.append)
    for chunk in (b"on", b"e\ntw", b"o\r\n\n", b"\xc3", b"\xa9\n"):
        lines.feed(chunk)
    assert told == ["one", "two", "", "é"]


async def test_a_line_without_an_end_is_told_after_a_moment_and_its_rest_later():
    told: list[str] = []
    lines = LogLines(told.append)
    lines.feed(b"password: ")
    assert told == []
    await asyncio.sleep(0.4)
    lines.feed(b"more")
    lines.close()
    assert told == ["password: ", "more"]


async def test_bytes_that_are_no_text():
    told: list[str] = []
    LogLines(told.append).feed(b"\xff\x00\n")
    assert told == ["\\xff\x00"]


async def test_floods_are_counted():
    told: list[str] = []
    lines = LogLines(told.append)
    for _ in range(100):
        lines.feed(b"x\n" * 1000)
    lines.feed(b"y" * 1_000_000 + b"\n")
    lines.close()
    assert len(told) == 501
    assert told[-1] == f"... and {100_000 + 1 - 500} more lines"
